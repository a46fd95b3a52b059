package main

import (
	"context"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

// chromium starts one without a window. Each chromedp.NewContext of the result is a tab.
func chromium(ctx context.Context, more ...chromedp.ExecAllocatorOption) (context.Context, context.CancelFunc, error) {
	bin, err := webtest.FindChromium()
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(bin), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(980, 860),
		chromedp.WSURLReadTimeout(time.Minute)) // a busy machine takes more than chromedp's 20 s to start one
	all, stop := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	first, end := chromedp.NewContext(all)
	return first, func() { end(); stop() }, chromedp.Run(first)
}
