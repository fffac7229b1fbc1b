package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// The program is started, used, and ended by a real SIGTERM: nothing stays lent.
func TestSIGTERMReturnsWhatTheNodeHolds(t *testing.T) {
	server := redistest.Start(t)
	program := filepath.Join(t.TempDir(), "service")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	cmd := exec.Command(program, "-addr", addr, "-redis", server.Addr)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for deadline := time.Now().Add(20 * time.Second); admitted < 300; {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("%d of 300 requests admitted; %s", admitted, out.String())
		}
		if get(addr) == http.StatusOK {
			admitted++
		} else {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "back in Redis") {
		t.Errorf("it ended with %v: %s", err, out.String())
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
	if err != nil {
		t.Fatal(err)
	}
	state, err := api.Inspect(context.Background(), "k")
	if err != nil || state.Store == nil {
		t.Fatalf("%v, %s", err, state.StoreCause)
	}
	if state.Store.Lent != 0 || state.Store.Used == 0 {
		t.Errorf("%v used, %d still lent", state.Store.Used, state.Store.Lent)
	}
}

func get(addr string) int {
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s/", addr), nil)
	if err != nil {
		return 0
	}
	req.Header.Set("X-API-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
