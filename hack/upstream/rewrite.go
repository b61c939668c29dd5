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

// controller is the import that each suite must have: without it stories would be
// played with upstream's controller.
const controller = "k8s.io/kubernetes/pkg/controller/volume/persistentvolume"

// replaced are the imports that stories get from this module instead.
var replaced = map[string]string{
	controller: "github.com/stowage-dev/stowage/hack/upstream/persistentvolume",
	"k8s.io/kubernetes/test/integration/util": "github.com/stowage-dev/stowage/hack/upstream/util",
}

// errNothingReplaced says that upstream constructs its controller elsewhere by now.
var errNothingReplaced = errors.New("no file imports " + controller)

// rewrite gives a file the other imports, and reports whether it had upstream's
// controller. All else stays as it is, to the byte.
func rewrite(name string, source []byte) (rewritten []byte, had bool, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ImportsOnly)
	if err != nil {
		return nil, false, fmt.Errorf("parsing a story: %w", err)
	}
	rewritten = slices.Clone(source)
	// The last first: the positions of the others stay true.
	for _, imported := range slices.Backward(file.Imports) {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return nil, false, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		if replacement, found := replaced[path]; found {
			from, to := files.Position(imported.Path.Pos()).Offset, files.Position(imported.Path.End()).Offset
			rewritten = slices.Replace(rewritten, from, to, []byte(strconv.Quote(replacement))...)
			had = had || path == controller
		}
	}
	return rewritten, had, nil
}

// storiesOf are the names of a file's tests.
func storiesOf(name string, source []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing a story: %w", err)
	}
	var names []string
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
			names = append(names, function.Name.Name)
		}
	}
	return names, nil
}
