// Package game is the game of examples/tanks: what server, clients and bots share, without a window.
//
// Tanks are their players' own: predicted, corrected, smoothed. Drones fly as the server likes and are interpolated; a shot hits what its player saw.
// Shells appear with the key. Ammunition is known to its owner alone, crates sleep until somebody takes one, the score board is a list that
// sends what changes, and who loses the connection finds tank and score again.
package game
