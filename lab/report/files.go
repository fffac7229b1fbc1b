package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/hybridlimit/hybrid/lab/plot"
)

// Files are all generated files, by path from the repository's root, where doc is
// the present text of docs/accuracy.md.
func (d Data) Files(doc string) (map[string][]byte, error) {
	files := map[string][]byte{}
	doc, err := d.document(doc)
	if err != nil {
		return nil, err
	}
	files[Document] = []byte(doc)
	if files[Numbers], err = d.JSON(); err != nil {
		return nil, err
	}
	return files, draw(files, d.figures())
}

// draw adds both variants of pictures to the files.
func draw(files map[string][]byte, figures []figure) error {
	for _, f := range figures {
		for _, theme := range []plot.Theme{plot.Light, plot.Dark} {
			var b bytes.Buffer
			if err := f.chart.WriteSVG(&b, theme); err != nil {
				return fmt.Errorf("report: chart %s: %w", f.name, err)
			}
			files["docs/"+f.path(theme)] = b.Bytes()
		}
	}
	return nil
}

// The generated files besides the pictures, from the repository's root.
const (
	Document = "docs/accuracy.md"
	Numbers  = "docs/accuracy.json"
)

// document fills in all blocks, each of which must be there.
func (d Data) document(doc string) (string, error) {
	blocks := d.tables()
	for _, f := range d.figures() {
		blocks["chart "+f.name] = f.picture()
	}
	for _, name := range slices.Sorted(maps.Keys(blocks)) {
		var err error
		if doc, err = replace(doc, name, blocks[name]); err != nil {
			return "", err
		}
	}
	return doc, nil
}

// path is a picture's, from the document.
func (f figure) path(theme plot.Theme) string {
	return fmt.Sprintf("img/%s-%v.svg", f.name, theme)
}

// picture shows the variant that suits the reader's page, with what was measured.
func (f figure) picture() string {
	return fmt.Sprintf(`<picture>
  <source media="(prefers-color-scheme: dark)" srcset="%s">
  <img src="%s" alt="%s">
</picture>

%s
`, f.path(plot.Dark), f.path(plot.Light), f.chart.Title, f.caption)
}
