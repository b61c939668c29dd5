package reference_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

var eventType = regexp.MustCompile(`^EventType(Normal|Warning)$`)

// use collects what one file does with reasons.
func (c *code) use(of source, positions *token.FileSet) {
	checker := checker{code: c, source: of, positions: positions, parameters: reasonParameters(of.file)}
	ast.Inspect(of.file, checker.visit)
}

// reasonParameters returns the functions of a file that have a parameter called reason, and its place.
func reasonParameters(file *ast.File) map[string]int {
	places := map[string]int{}
	for _, decl := range file.Decls {
		function, is := decl.(*ast.FuncDecl)
		if !is {
			continue
		}
		at := 0
		for _, field := range function.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == "reason" {
					places[function.Name.Name] = at
				}
				at++
			}
		}
	}
	return places
}

// checker visits one file.
type checker struct {
	*code
	source
	positions  *token.FileSet
	parameters map[string]int
}

// visit collects uses of reasons. A comparison is none, nor is the list of reasons that have a line in the log.
func (c checker) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.BinaryExpr:
		return n.Op != token.EQL && n.Op != token.NEQ
	case *ast.CaseClause:
		for _, statement := range n.Body {
			ast.Inspect(statement, c.visit)
		}
		return false
	case *ast.KeyValueExpr:
		c.visitField(n)
		ast.Inspect(n.Value, c.visit)
		return false
	case *ast.CallExpr:
		c.visitCall(n)
	case *ast.AssignStmt:
		c.visitAssignment(n)
	case *ast.CompositeLit:
		c.pair(n.Elts)
	case ast.Expr:
		return c.visitExpression(n)
	}
	return true
}

func (c checker) visitExpression(expression ast.Expr) bool {
	if name := c.nameOf(c.source, expression); name != "" && c.folder != eventFolder {
		if !slices.Contains(c.uses[name], c.folder) {
			c.uses[name] = append(c.uses[name], c.folder)
		}
		return false
	}
	if selector, is := expression.(*ast.SelectorExpr); is {
		if about, is := coreTypes[selector.Sel.Name]; is {
			// The names of two types of Kubernetes have a Volume that their values lack.
			c.types[strings.TrimPrefix(strings.TrimPrefix(selector.Sel.Name, "PersistentVolumeClaim"), "Volume")] = about
		}
	}
	return true
}

func (c checker) visitField(field *ast.KeyValueExpr) {
	if name, is := field.Key.(*ast.Ident); is && (name.Name == "Reason" || name.Name == "Event") {
		c.checkConstant(field.Value)
	}
}

func (c checker) visitCall(call *ast.CallExpr) {
	name := ""
	switch function := call.Fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		name = function.Sel.Name
	}
	const reasonOfEventf = 3
	at, known := c.parameters[name]
	if name == "Eventf" {
		at, known = reasonOfEventf, true
	}
	if !known || at >= len(call.Args) {
		return
	}
	c.checkConstant(call.Args[at])
	c.pair(call.Args)
	if reason, is := call.Args[at].(*ast.SelectorExpr); is && name == "Eventf" && reason.Sel.Name == "Reason" && fmt.Sprint(reason.X) != "event" {
		c.dynamic = append(c.dynamic, c.folder)
	}
}

func (c checker) visitAssignment(assignment *ast.AssignStmt) {
	for i, to := range assignment.Lhs {
		name := ""
		switch e := to.(type) {
		case *ast.Ident:
			name = e.Name
		case *ast.SelectorExpr:
			name = e.Sel.Name
		}
		if slices.Contains([]string{"reason", "Reason", "Event"}, name) && i < len(assignment.Rhs) {
			c.checkConstant(assignment.Rhs[i])
		}
	}
	c.pair(assignment.Rhs)
}

// pair notes the type of an event that stands beside its reason, or beside Warning: true.
func (c checker) pair(expressions []ast.Expr) {
	kind, reason := "", ""
	for _, expression := range expressions {
		if field, is := expression.(*ast.KeyValueExpr); is {
			if key := fmt.Sprint(field.Key); key == "Warning" {
				kind = "Warning"
			} else if key != "Event" && key != "Reason" && key != "Kind" {
				continue
			}
			expression = field.Value
		}
		if selector, is := expression.(*ast.SelectorExpr); is && eventType.MatchString(selector.Sel.Name) {
			kind = strings.TrimPrefix(selector.Sel.Name, "EventType")
		}
		if name := c.nameOf(c.source, expression); strings.HasPrefix(name, eventFolder+".") {
			reason = name
		}
	}
	if kind != "" && reason != "" && !slices.Contains(c.kinds[reason], kind) {
		c.kinds[reason] = append(c.kinds[reason], kind)
	}
}

var isReason = regexp.MustCompile(`^"[A-Z][A-Za-z]*"$`)

// checkConstant notes a reason that is a string, or a constant that isn't declared with the others.
func (c checker) checkConstant(expression ast.Expr) {
	literal, is := expression.(*ast.BasicLit)
	if is && isReason.MatchString(literal.Value) {
		c.bare = append(c.bare, fmt.Sprintf("%s: %s", c.positions.Position(literal.Pos()), literal.Value))
	}
	name, is := expression.(*ast.Ident)
	if is && name.Obj != nil && name.Obj.Kind == ast.Con && c.nameOf(c.source, name) == "" {
		c.bare = append(c.bare, fmt.Sprintf("%s: %s", c.positions.Position(name.Pos()), name.Name))
	}
}
