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
	"PersistentVolumeClaimVolumeModifyingVolume":   "The volume of a claim gets the attributes of another VolumeAttributesClass.",
	"PersistentVolumeClaimVolumeModifyVolumeError": "The volume of a claim couldn't get the attributes.",
	"PersistentVolumeClaimUnused":                  "No pod refers to a bound claim, since the transition time. Only scope=cluster writes it.",
}

// declare collects the constants of one file.
func (c *code) declare(of source) {
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
			comment := value.Doc
			if comment == nil && len(general.Specs) == 1 {
				comment = general.Doc
			}
			c.declareConstant(of, value, constant{c.valueOf(of, value.Values[0]), causeIn(comment, value.Names[0].Name)})
		}
	}
}

func (c *code) declareConstant(of source, spec *ast.ValueSpec, declared constant) {
	name := spec.Names[0].Name
	prefix, declares := declaring[of.folder]
	switch {
	case of.folder == "api/v1alpha1" && strings.HasSuffix(name, "Condition"):
		c.types[declared.value] = declared.cause
	case of.folder == "internal/backend" && fmt.Sprint(spec.Type) == "ErrorKind":
		c.errorKinds = append(c.errorKinds, declared)
	case declares && ast.IsExported(name) == ast.IsExported(cmp.Or(prefix, "Any")) && strings.HasPrefix(name, prefix) && declared.value != "":
		if c.constants[of.folder] == nil {
			c.constants[of.folder] = map[string]constant{}
		}
		c.constants[of.folder][name] = declared
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
	path := filepath.Join(root, "docs", "reference", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s is stale: run go test ./test/reference -update (%v)", path, err)
	}
}
