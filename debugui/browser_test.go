package debugui

import _ "github.com/chromedp/chromedp"
