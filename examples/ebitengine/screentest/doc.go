// Package screentest looks at the arena's window: its test runs a server, starts the game on a virtual screen (Xvfb),
// reads the screen's pixels, and compares what is drawn with what the server knows. With xdotool it presses keys,
// too. Without Xvfb, or X11's headers to build the window, it says so and is skipped.
//
//	apt-get install xvfb xdotool libgl1 libgl1-mesa-dri \
//		libx11-dev libxrandr-dev libxcursor-dev libxinerama-dev libxi-dev libxxf86vm-dev
//	go test ./screentest -artifacts -outputdir /tmp     # keeps the screenshots
package screentest
