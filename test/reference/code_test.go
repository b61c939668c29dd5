package reference_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root        = "../.."
	module      = "github.com/stowage-dev/stowage/"
	eventFolder = "internal/event"
)

// declaring are the folders with constants of reasons, and what the names of these begin with.
var declaring = map[string]string{
	eventFolder: "", "api/v1alpha1": "Reason", "internal/bindable": "Reason",
	"internal/nodemanager/podstatus": "Reason", "internal/nodemanager/growth": "reason",
}

// constant is a reason in the code. Its comment is the cause.
type constant struct{ value, cause string }

// code is what the production code says of reasons.
type code struct {
	// constants are the reasons, by folder and name.
	constants map[string]map[string]constant
	// uses are the folders that use a reason other than to compare it, by folder.name of the constant.
	uses map[string][]string
	// kinds are the types of events with a reason, by folder.name of the constant.
	kinds map[string][]string
	// types are the types of conditions, with their comments.
	types map[string]string
	// errorKinds are the kinds of backends' errors.
	errorKinds []constant
	// dynamic are the folders that record events with the reason of a condition.
	dynamic []string
	// bare are the places with a reason that is no constant.
	bare []string
}

// source is a parsed file of the production code.
type source struct {
	folder  string
	file    *ast.File
	imports map[string]string
}

var parsed = sync.OnceValues(func() (*code, error) {
	positions := token.NewFileSet()
	sources, err := parse(positions)
	if err != nil {
		return nil, err
	}
	found := &code{constants: map[string]map[string]constant{}, uses: map[string][]string{}, kinds: map[string][]string{}, types: map[string]string{}}
	for _, of := range sources {
		found.declare(of)
	}
	for _, of := range sources {
		found.use(of, positions)
	}
	return found, nil
})

func read(t *testing.T) *code {
	t.Helper()
	found, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parse reads the production code that sets conditions and records events. gcemock, the plug-in of
// kubectl and the errors of the cloud have reasons of their own.
func parse(positions *token.FileSet) (sources []source, err error) {
	for _, top := range []string{"api", "controllers", "internal"} {
		err = filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil || within(folder, []string{"internal/gcemock", "internal/kubectl", "internal/backend/gce", "internal/backend/local", "internal/csi"}) {
				return err
			}
			file, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			sources = append(sources, source{folder, file, importsOf(file)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// importsOf returns the folders of the module that a file imports, by their names in it.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		folder, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		name := filepath.Base(folder)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = folder
	}
	return imports
}

func within(folder string, of []string) bool {
	return slices.ContainsFunc(of, func(top string) bool { return folder == top || strings.HasPrefix(folder, top+"/") })
}

func cutLast(text, sep string) (before, after string, found bool) {
	at := strings.LastIndex(text, sep)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(sep):], true
}

// coreTypes are the conditions of claims that Kubernetes declares.
var coreTypes = map[string]string{
	"PersistentVolumeClaimResizing":                "The backend grows the volume of a claim.",
	"PersistentVolumeClaimControllerResizeError":   "The backend couldn't grow the volume of a claim.",
	"PersistentVolumeClaimFileSystemResizePending": "The volume of a claim has grown, and its file system has not.",
	"PersistentVolumeClaimNodeResizeError":         "The node couldn't grow the file system of a claim's volume.",
	"PersistentVolumeClaimUnused":                  "No pod refers to a bound claim, since the transition time. Only scope=cluster writes it.",
}

// declare collects the constants of one file.
func (c *code) declare(of source) {
	prefix, declares := declaring[of.folder]
	for _, decl := range of.file.Decls {
		general, is := decl.(*ast.GenDecl)
		if !is || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			if len(value.Values) != 1 {
				continue
			}
			name, comment := value.Names[0].Name, value.Doc
			if comment == nil && len(general.Specs) == 1 {
				comment = general.Doc
			}
			declared := constant{c.valueOf(of, value.Values[0]), causeIn(comment, name)}
			switch {
			case of.folder == "api/v1alpha1" && strings.HasSuffix(name, "Condition"):
				c.types[declared.value] = declared.cause
			case of.folder == "internal/backend" && fmt.Sprint(value.Type) == "ErrorKind":
				c.errorKinds = append(c.errorKinds, declared)
			case declares && strings.HasPrefix(name, prefix) && declared.value != "" && (prefix != "" || filepath.Base(of.folder) == "event" && ast.IsExported(name)):
				if c.constants[of.folder] == nil {
					c.constants[of.folder] = map[string]constant{}
				}
				c.constants[of.folder][name] = declared
			}
		}
	}
}

// valueOf returns the text of a constant: a string, or another constant's, whose name it has.
func (c *code) valueOf(of source, expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.SelectorExpr:
		if x, is := e.X.(*ast.Ident); is && of.imports[x.Name] == eventFolder {
			return e.Sel.Name // the constants of package event have their values' names
		}
	}
	return ""
}

var spaces = regexp.MustCompile(`\s+`)

// causeIn returns the comment of a constant as a sentence, without the constant's name.
func causeIn(comment *ast.CommentGroup, name string) string {
	text := strings.TrimSpace(spaces.ReplaceAllString(comment.Text(), " "))
	text = strings.ReplaceAll(text, " ReadyCondition", " the condition Ready")
	if after, found := strings.CutPrefix(text, name+": "); found {
		text = after
	} else if at := strings.Index(text, " "+name+": "); at >= 0 {
		text = text[at+len(name)+3:]
	} else if after, found := strings.CutPrefix(text, name+" "); found {
		return "The condition " + after
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// find returns the constant that folder.name stands for.
func (c *code) find(name string) constant {
	folder, name, _ := cutLast(name, ".")
	return c.constants[folder][name]
}

// nameOf returns folder.name of the reason that an expression names, or "".
func (c *code) nameOf(of source, expression ast.Expr) string {
	folder, name := of.folder, ""
	switch e := expression.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		x, is := e.X.(*ast.Ident)
		if !is || of.imports[x.Name] == "" {
			return ""
		}
		folder, name = of.imports[x.Name], e.Sel.Name
	}
	if _, is := c.constants[folder][name]; !is {
		return ""
	}
	return folder + "." + name
}

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
			c.types[strings.TrimPrefix(selector.Sel.Name, "PersistentVolumeClaim")] = about
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

// canSet reports whether code of the folders that set a kind's conditions uses a reason.
func (c *code) canSet(of conditionsOf, reason string) bool {
	for name, folders := range c.uses {
		if c.find(name).value == reason && slices.ContainsFunc(folders, func(folder string) bool { return within(folder, of.In) }) {
			return true
		}
	}
	return of.Kinds && slices.ContainsFunc(c.errorKinds, func(kind constant) bool { return kind.value == reason })
}

// causeOf returns why a condition has its reason: as the row says, else as the constant's comment does.
func (c *code) causeOf(of conditionsOf, written row) string {
	const cause = 3
	if len(written) > cause {
		return written[cause]
	}
	for _, folder := range of.Constants {
		for _, declared := range c.constants[folder] {
			if declared.value == written.reason() && declared.cause != "" {
				return declared.cause
			}
		}
	}
	for _, kind := range c.errorKinds {
		if of.Kinds && kind.value == written.reason() {
			return kind.cause
		}
	}
	return ""
}

// checkPage compares a page with what it has to be, or writes it.
func checkPage(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, "docs/reference", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if cmp.Or(err != nil, string(text) != want) {
		t.Errorf("%s is stale: run go test ./test/reference -update (%v)", path, err)
	}
}
