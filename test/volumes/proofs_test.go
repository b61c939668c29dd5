package volumes_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// marker begins the comment above a test that proves what the document says. The names
// of what it proves follow, with spaces between them.
const marker = "//proves:"

type proof struct{ test, file string }

type proofs map[string][]proof

func findProofs(folders []string) (proofs, error) {
	found := proofs{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return found.add(path, content)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (p proofs) add(path string, content []byte) error {
	if !bytes.Contains(content, []byte("\n"+marker)) && !bytes.Contains(content, []byte("\t"+marker)) {
		return nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tests := testsIn(files, file)
	var problems []error
	for _, comments := range file.Comments {
		named := namedIn(comments)
		if len(named) == 0 {
			continue
		}
		test, below := tests[files.Position(comments.End()).Line+1]
		if !below {
			problems = append(problems, fmt.Errorf("%s: no test begins below the marker: put it right above one", files.Position(comments.Pos())))
		}
		for _, name := range named {
			p[name] = append(p[name], proof{test: test, file: filepath.ToSlash(path)})
		}
	}
	return errors.Join(problems...)
}

func namedIn(comments *ast.CommentGroup) []string {
	var named []string
	for _, comment := range comments.List {
		if names, marked := strings.CutPrefix(comment.Text, marker); marked {
			named = append(named, strings.Fields(names)...)
		}
	}
	return named
}
