package debugui

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/hybridlimit/hybrid"
)

// Options are the settings of a page. The zero value of each field means its
// default.
type Options struct {
	// ShowKeys shows keys as they are. By default a key is masked: its first three
	// characters, and never more than a third of it, and six digits of a hash that
	// differs from process to process.
	ShowKeys bool

	// Name is what the page calls this server: the one among many tabs. Up to 128
	// bytes, default the host's name.
	Name string
}

const longestName = 128

// Handler returns the page of a node and, at the same path, its data. It can be
// mounted at any path. It does not ask who looks: put it behind your own
// authentication. It reads and changes nothing, and has nothing to close.
//
// It fails with hybrid.ErrInvalidOption.
func Handler(node *hybrid.Node, opts *Options) (http.Handler, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	switch {
	case node == nil:
		return nil, invalid("node", "nil", "a node")
	case len(o.Name) > longestName:
		return nil, invalid("Options.Name", fmt.Sprintf("%d bytes", len(o.Name)), "up to 128 bytes")
	}
	if o.Name == "" {
		o.Name, _ = os.Hostname() // without one the page has no name
	}
	return newHandler(node, o, func(past history) sample { return lookAt(node, past) }), nil
}

func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: %s: %v, allowed %s", hybrid.ErrInvalidOption, field, value, allowed)
}

type handler struct {
	node    *hybrid.Node
	keys    *keyring
	sampler *sampler
	telling chan struct{}
}

func newHandler(node *hybrid.Node, o Options, look func(past history) sample) *handler {
	h := &handler{node: node, keys: newKeyring(o.ShowKeys), telling: make(chan struct{}, mostStories)}
	h.sampler = &sampler{look: look, forget: h.keys.forget, build: func(past history) *report { return build(o.Name, h.keys, past) }}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, problemf(http.StatusMethodNotAllowed, "the page only shows: GET or HEAD"))
		return
	}
	data, err := wantsData(r)
	switch {
	case err != nil:
		refuse(w, err)
	case !data:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // whoever left does not need it
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", jsonType) // nobody would see it, so nobody looks for it
	default:
		h.serveData(w, r)
	}
}

func (h *handler) serveData(w http.ResponseWriter, r *http.Request) {
	key, one, err := h.asked(r)
	var answer any
	switch {
	case err != nil:
	case one:
		answer, err = h.tell(r.Context(), key)
	default:
		answer = h.sampler.current()
	}
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

const jsonType = "application/json"

// wantsData tells programs from people: by ?format=, else by the Accept header.
func wantsData(r *http.Request) (bool, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // what can be read of it is not what was asked
		return false, problemf(http.StatusBadRequest, "the query cannot be read")
	}
	switch query.Get("format") {
	case "json":
		return true, nil
	case "html":
		return false, nil
	case "":
		page, data := accepted(r)
		return data > page, nil
	default:
		return false, problemf(http.StatusBadRequest, "format: allowed json or html")
	}
}

// accepted returns how much a client likes the page and the data, from 0 to 1. What
// cannot be read is neither.
func accepted(r *http.Request) (page, data float64) {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, _ := mime.ParseMediaType(one)
		q := 1.0
		if text, ok := params["q"]; ok {
			q, _ = strconv.ParseFloat(text, 64) // what is no number is not wanted
		}
		switch kind {
		case "text/html":
			page = max(page, q)
		case jsonType:
			data = max(data, q)
		}
	}
	return page, data
}

// secure sets what every response has: no cache keeps it, no page frames it, and
// the page may run its own script and ask its own origin, no more.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var p *problem
	if errors.As(err, &p) {
		status = p.status
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// writeJSON writes a value with <, > and & escaped: even in a page that it does not
// belong in, it would be no markup.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the data cannot be written"}`)
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
