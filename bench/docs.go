package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hybridlimit/hybrid/bench/measure"
	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

// runDocs measures all, and writes it into the document. It is run from the
// repository's root.
func runDocs(ctx context.Context, args []string, out io.Writer) error {
	c, err := parse("docs", args, out)
	if err != nil {
		return err
	}
	return writeDocs(ctx, c, report.Document)
}

func writeDocs(ctx context.Context, c measure.Config, document string) error {
	// A document that cannot be written is found out at once, not in minutes.
	if err := report.Check(document, "bench:peers", "bench:maps"); err != nil {
		return err
	}
	res, err := measure.Run(ctx, c, progress)
	if err != nil {
		return err
	}
	maps, err := measure.Maps(ctx, c, progress)
	if err != nil {
		return err
	}
	made := report.Made(res.Redis)
	return report.Write(document, map[string]string{
		"bench:peers": peersBlock(made, res.Tables),
		"bench:maps":  mapsBlock(made, &maps),
	})
}

func peersBlock(made string, tables []report.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `go run ./bench docs`: %s.\n\n", made)
	b.WriteString(contestants())
	for i := range tables {
		b.WriteString(tables[i].Markdown(measure.Why))
	}
	return b.String()
}

// contestants lists who takes part, in which version.
func contestants() string {
	versions := report.Versions()
	var b strings.Builder
	b.WriteString("| contestant | version | enforces | keeps |\n|---|---|---|---|\n")
	for _, k := range peer.All() {
		version := versions[k.Module]
		switch {
		case k.Module == "":
			version = "this commit"
		case version == "":
			version = "unknown"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.Name, version, k.Rule, k.Keeps)
	}
	return b.String() + "\n"
}

func mapsBlock(made string, t *report.Table) string {
	versions := report.Versions()
	return fmt.Sprintf("Measured by `go run ./bench docs` (`go run ./bench maps` prints it): %s; xsync %s and %s.\n\n%s",
		made, versions["github.com/puzpuzpuz/xsync/v3"], versions["github.com/puzpuzpuz/xsync/v4"], t.Markdown(measure.Why))
}
