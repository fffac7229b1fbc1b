package main

import (
	"fmt"
	"io"
	"os"
)

// progress is a line that counts up, on a terminal and nowhere else.
func progress(out io.Writer) func(done int) {
	f, isFile := out.(*os.File)
	if !isFile {
		return func(int) {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int) {}
	}
	return func(done int) {
		fmt.Fprintf(f, "\rsending %d of %d", done, requests)
		if done == requests {
			fmt.Fprint(f, "\r\033[K")
		}
	}
}
