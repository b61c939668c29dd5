package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// renamed are the functions of upstream's harness of tables in whose place those of
// tables/record_test.go are called.
var renamed = []string{
	"runSyncTests", "runMultisyncTests", "testSyncClaim", "testSyncClaimError", "testSyncVolume",
	"wrapTestWithPluginCalls", "wrapTestWithCSIMigrationProvisionCalls", "wrapTestWithInjectedOperation",
}

// inserted is what rows do that are in no table of that harness, by their test: they
// record themselves.
var inserted = map[string]string{
	"TestControllerSync":             "recordController(t, ctx, test); return; ",
	"TestAnnealMigrationAnnotations": "recordAnnotations(t, tc.name, tc.volumeAnnotations, tc.expVolumeAnnotations, tc.claimAnnotations, tc.expClaimAnnotations); return; ",
	"TestModifyDeletionFinalizers": "if tc.volumeAnnotations != nil { tc.initialVolume.SetAnnotations(tc.volumeAnnotations) }; " +
		"recordFinalizers(t, tc.name, tc.initialVolume, tc.expVolumeFinalizers); return; ",
}

// tabled are the tests that have tables.
const tabled = "^Test(Sync|SyncBlockVolume|MultiSync|DeleteSync|DeleteMultiSync|ProvisionSync|ProvisionMultiSync|RecycleSync|RecycleMultiSync|" +
	"ControllerSync|AnnealMigrationAnnotations|ModifyDeletionFinalizers|RetroactiveStorageClassAssignment)$"

// writeTables writes the rows of upstream's tables into a file, a line of JSON each.
func writeTables(ctx context.Context, o options) error {
	upstream, modules, err := findUpstream(ctx)
	if err != nil {
		return err
	}
	s := suite{name: "tables", binary: filepath.Join(o.output(), "tables.test"), modules: modules}
	overlay, err := s.generateTables(filepath.Join(upstream, "pkg", "controller", "volume", "persistentvolume"), filepath.Join(o.output(), s.name))
	if err != nil {
		return fmt.Errorf("generating upstream's tables: %w", err)
	}
	if err := s.compile(ctx, overlay, filepath.Join(o.output(), s.name+".json")); err != nil {
		return err
	}
	if err := os.Remove(o.tables); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing earlier rows: %w", err)
	}
	command := exec.CommandContext(ctx, s.binary, "-test.run="+tabled)
	command.Env = append(os.Environ(), "STOWAGE_UPSTREAM_TABLES="+o.tables)
	if output, err := command.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("recording upstream's tables: %w", err), errors.New(string(output)))
	}
	return nil
}

// generateTables writes upstream's package as it is to be built, and says of which files
// of this module they are to be taken for the content.
func (s *suite) generateTables(from, to string) (overlay map[string]string, err error) {
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return nil, err
	}
	here, err := filepath.Abs(s.name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	overlay = map[string]string{}
	missing := slices.Concat(renamed, slices.Collect(maps.Keys(inserted)))
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text, found, err := recording(file, source)
		if err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(found, name) })
		name := filepath.Base(file)
		if err := os.WriteFile(generated(to, name), text, 0o600); err != nil {
			return nil, err
		}
		overlay[filepath.Join(here, name)] = generated(to, name)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("upstream has no %s any more", strings.Join(missing, ", "))
	}
	return overlay, nil
}

// edit is a text that is put in at an offset of a file.
type edit struct {
	at   int
	text string
}

// recording makes a file record its tables, and returns the functions that it changed.
func recording(name string, source []byte) (changed []byte, found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing a table: %w", err)
	}
	var edits []edit
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil {
			continue
		}
		if slices.Contains(renamed, function.Name.Name) {
			edits = append(edits, edit{files.Position(function.Name.Pos()).Offset, "upstream_"})
			found = append(found, function.Name.Name)
		}
		if text, ok := inserted[function.Name.Name]; ok {
			at := rowOf(function)
			if !at.IsValid() {
				continue
			}
			edits = append(edits, edit{files.Position(at).Offset, text})
			found = append(found, function.Name.Name)
		}
	}
	changed = slices.Clone(source)
	// The last first: the offsets of the others stay true.
	for _, e := range slices.Backward(edits) {
		changed = slices.Insert(changed, e.at, []byte(e.text)...)
	}
	return changed, found, nil
}

// rowOf is where the body of the function begins that a test calls for each row.
func rowOf(test *ast.FuncDecl) (at token.Pos) {
	ast.Inspect(test.Body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		selected, isMethod := call.Fun.(*ast.SelectorExpr)
		body, isFunction := call.Args[1].(*ast.FuncLit)
		if isMethod && isFunction && selected.Sel.Name == "Run" {
			at = body.Body.Lbrace + 1
		}
		return true
	})
	return at
}
