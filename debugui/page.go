package debugui

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"strings"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// page is the whole page. It holds no data: the script asks for that.
var page = []byte(strings.NewReplacer("{{style}}", pageCSS, "{{script}}", pageJS).Replace(pageHTML))

// policy allows the style and the script of the page by their hashes, data from
// where the page came from, and nothing else. A form cannot be sent: the browser
// would put the key into the URL. Text cannot become markup: the script has no way
// left to make it so.
var policy = strings.Join([]string{
	"default-src 'none'",
	"style-src " + hashOf(pageCSS),
	"script-src " + hashOf(pageJS),
	"connect-src 'self'",
	"img-src data:",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types 'none'",
}, "; ")

func hashOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
