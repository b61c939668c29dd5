package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// controller is the import that each suite must have: without it tests would be
// played with upstream's controller.
const controller = "k8s.io/kubernetes/pkg/controller/volume/persistentvolume"

var replaced = map[string]string{
	controller: "github.com/stowage-dev/stowage/hack/upstream/persistentvolume",
	"k8s.io/kubernetes/test/integration/util": "github.com/stowage-dev/stowage/hack/upstream/util",
}

// errNothingReplaced says that upstream constructs its controller elsewhere by now.
var errNothingReplaced = errors.New("no file imports " + controller)

// edit is a text that takes the place of what is between two positions of a file.
type edit struct {
	from, to token.Pos
	text     string
}

// edited is a file's source with edits, which are in the order of their positions. All else
// stays as it is, to the byte.
func edited(file *ast.File, source []byte, edits []edit) []byte {
	changed := slices.Clone(source)
	// The last first: the positions of the others stay true.
	for _, e := range slices.Backward(edits) {
		changed = slices.Replace(changed, int(e.from-file.FileStart), int(e.to-file.FileStart), []byte(e.text)...)
	}
	return changed
}

// rewrite gives a file the other imports, and reports whether it had upstream's controller.
func rewrite(name string, source []byte) (rewritten []byte, had bool, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, false, err
	}
	var edits []edit
	for _, imported := range file.Imports {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return nil, false, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		if replacement, found := replaced[path]; found {
			edits = append(edits, edit{imported.Path.Pos(), imported.Path.End(), strconv.Quote(replacement)})
			had = had || path == controller
		}
	}
	return edited(file, source, edits), had, nil
}

func testsOf(name string, source []byte) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
			names = append(names, function.Name.Name)
		}
	}
	return names, nil
}
