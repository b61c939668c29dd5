package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/stowage-dev/stowage/"

func measureAll(patterns ...string) (map[subject]int, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	numbers := map[subject]int{}
	for _, each := range loaded {
		if len(each.Errors) > 0 {
			return nil, fmt.Errorf("loading %s: %w", each.PkgPath, each.Errors[0])
		}
		measurePackage(each, numbers)
	}
	return numbers, nil
}

func measurePackage(of *packages.Package, numbers map[subject]int) {
	path := strings.TrimPrefix(of.PkgPath, module)
	var files []*ast.File
	for _, file := range of.Syntax {
		if ast.IsGenerated(file) {
			continue
		}
		files = append(files, file)
		position := of.Fset.File(file.FileStart)
		lines := position.LineCount()
		numbers[subject{"file-lines", path + "/" + filepath.Base(position.Name())}] = lines
		numbers[subject{"package-lines", path}] += lines
		numbers[subject{"production-lines", "."}] += lines
	}
	numbers[subject{"package-files", path}] = len(files)
	numbers[subject{"cycles", path}] = cycles(usesBetween(files, of.TypesInfo))
	measureReconcilers(of, path, numbers)
}

func measureReconcilers(of *packages.Package, path string, numbers map[subject]int) {
	for _, name := range of.Types.Scope().Names() {
		defined, ok := of.Types.Scope().Lookup(name).Type().(*types.Named)
		if !ok {
			continue
		}
		for method := range defined.Methods() {
			if method.Name() == "Reconcile" {
				numbers[subject{"methods", path + "." + name}] = defined.NumMethods()
			}
		}
	}
}
