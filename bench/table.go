package main

import (
	"context"
	"fmt"
	"io"

	"github.com/hybridlimit/hybrid/bench/measure"
	"github.com/hybridlimit/hybrid/bench/report"
)

// runTable prints the comparison with peers.
func runTable(ctx context.Context, args []string, out io.Writer) error {
	c, err := parse("table", args, out)
	if err != nil {
		return err
	}
	res, err := measure.Run(ctx, c, progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", report.Made(res.Redis))
	for i := range res.Tables {
		res.Tables[i].Print(out)
	}
	return nil
}

// runMaps prints the comparison of maps.
func runMaps(ctx context.Context, args []string, out io.Writer) error {
	c, err := parse("maps", args, out)
	if err != nil {
		return err
	}
	t, err := measure.Maps(ctx, c, progress)
	if err != nil {
		return err
	}
	t.Print(out)
	return nil
}
