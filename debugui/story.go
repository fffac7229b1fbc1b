package debugui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
)

// story is what the node and Redis know of one key.
type story struct {
	Limiter string        `json:"limiter"`
	Key     string        `json:"key"` // as lists show it
	Limit   string        `json:"limit"`
	Shadow  bool          `json:"shadow"` // what is denied passes all the same
	Known   bool          `json:"known"`  // this node remembers the key
	Why     string        `json:"why"`    // the next request of one token is allowed or denied
	Here    []fact        `json:"here"`   // on this node
	Account *accountStory `json:"account"`
	Missing string        `json:"missing"` // why there is no account
	Clock   string        `json:"clock"`
}

// fact is one thing that a node knows of a key.
type fact struct {
	Name string `json:"name"`
	figure
	Note string `json:"note"`
}

// accountStory is the key's account in Redis.
type accountStory struct {
	Used    figure `json:"used"` // tokens, with what is lent
	Lent    figure `json:"lent"` // tokens, to all servers
	Free    figure `json:"free"` // tokens
	Reset   figure `json:"reset_after"`
	Words   string `json:"text"`
	UsedBar number `json:"used_bar"` // without what is lent, in hundredths of the limit
	LentBar number `json:"lent_bar"`
}

// The headers that name a key. A key is often a secret, or a person, and URLs end
// up in logs, in histories and in Referer; request headers do not. A page of
// another origin cannot send them: its browser would ask first whether it may, and
// gets 405.
const (
	keyHeader   = "Hybrid-Key"    // the key's bytes, percent-encoded where they are no ASCII, with the limiter in the query
	keyIDHeader = "Hybrid-Key-Id" // the id of a key that was listed
)

// problem is an answer that is not what was asked for.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// asked finds the key that a request asks for; ok is false if it asks for none.
func (h *handler) asked(r *http.Request) (l listed, ok bool, err error) {
	ids, byID := r.Header[keyIDHeader]
	texts, byKey := r.Header[keyHeader]
	names, named := r.URL.Query()["limiter"]
	switch {
	case !byID && !byKey && !named:
		return l, false, nil
	case byID && (byKey || named) || len(ids) > 1 || len(texts) > 1 || len(names) > 1:
		return l, true, problemf(http.StatusBadRequest, "ask for one key: with the header %s alone, or with %s and ?limiter=", keyIDHeader, keyHeader)
	case byID:
		if l, ok = h.keys.find(ids[0]); !ok {
			return l, true, problemf(http.StatusNotFound, "no such key was listed in the last minutes")
		}
		if len(l.key) > exact.ShortKey {
			return l, true, problemf(http.StatusUnprocessableEntity, "the key is longer than %d bytes, of which the node keeps a digest alone: ask for it by its text", exact.ShortKey)
		}
		return l, true, nil
	case !byKey || !named:
		return l, true, problemf(http.StatusBadRequest, "a key needs both the header %s and ?limiter=", keyHeader)
	}
	key, err := url.PathUnescape(texts[0])
	if err != nil {
		return l, true, problemf(http.StatusBadRequest, "the header %s is not percent-encoded: a %% is written %%25", keyHeader)
	}
	return listed{names[0], key}, true, nil
}

// mostStories bounds how many stories are under way at once: each asks Redis.
const mostStories = 4

// tell finds a key's story.
func (h *handler) tell(ctx context.Context, l listed) (*story, error) {
	limiter := h.limiter(l.limiter)
	if limiter == nil {
		return nil, problemf(http.StatusNotFound, "the node has no limiter of that name")
	}
	select {
	case h.telling <- struct{}{}:
		defer func() { <-h.telling }()
	case <-ctx.Done():
		return nil, problemf(http.StatusServiceUnavailable, "too many keys are being looked up")
	}
	state, err := limiter.Inspect(ctx, l.key)
	switch {
	case errors.Is(err, hybrid.ErrInvalidKey):
		return nil, problemf(http.StatusBadRequest, "the key is longer than 64 KiB")
	case errors.Is(err, hybrid.ErrClosed):
		return nil, problemf(http.StatusNotFound, "the limiter is closed")
	case err != nil:
		return nil, problemf(http.StatusServiceUnavailable, "the key could not be looked up")
	}
	return storyOf(&state, limiter.Shadow(), nameOf(l.limiter), h.keys.show(l.limiter, exact.CellKey(l.key))), nil
}

func (h *handler) limiter(name string) *hybrid.Limiter {
	for _, l := range h.node.Limiters() {
		if l.Name() == name {
			return l
		}
	}
	return nil
}
