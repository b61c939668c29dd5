package volumes_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

func testsIn(files *token.FileSet, file *ast.File) map[int]string {
	tests := map[int]string{}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if name := declaration.Name.Name; strings.HasPrefix(name, "Test") {
				tests[files.Position(declaration.Type.Pos()).Line] = name
			}
		case *ast.GenDecl:
			addSpecs(files, declaration, tests)
		}
	}
	return tests
}

// containers and leaves are what Ginkgo calls suites of tests, and tests.
var (
	containers = []string{"Describe", "Context", "When"}
	leaves     = []string{"It", "DescribeTable", "Entry"}
)

// addSpecs adds the tests of Ginkgo's in a declaration. A test's name begins with those of
// the containers that it is in.
func addSpecs(files *token.FileSet, node ast.Node, tests map[int]string, names ...string) {
	ast.Inspect(node, func(node ast.Node) bool {
		call, calls := node.(*ast.CallExpr)
		if !calls {
			return true
		}
		called, plain := call.Fun.(*ast.Ident)
		if !plain {
			return true
		}
		within := append(slices.Clone(names), textOf(call))
		switch {
		case slices.Contains(leaves, called.Name):
			tests[files.Position(call.Pos()).Line] = strings.Join(within, " ")
		case !slices.Contains(containers, called.Name):
			return true
		}
		for _, argument := range call.Args {
			addSpecs(files, argument, tests, within...)
		}
		return false
	})
}

// textOf is the text that a call begins with; "" if it begins with something else.
func textOf(call *ast.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	if literal, is := call.Args[0].(*ast.BasicLit); is {
		text, _ := strconv.Unquote(literal.Value) // "" of a number
		return text
	}
	return ""
}
