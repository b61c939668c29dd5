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

func writeTables(ctx context.Context, o options) error {
	upstream, modules, err := findUpstream(ctx)
	if err != nil {
		return err
	}
	s := suite{name: "tables", modules: modules}
	missing := slices.Concat(renamed, slices.Collect(maps.Keys(inserted)))
	from := filepath.Join(upstream, "pkg", "controller", "volume", "persistentvolume")
	overlay, err := s.generate(from, o.output(), func(file string, source []byte) ([]byte, error) {
		text, found, err := recording(file, source)
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(found, name) })
		return text, err
	})
	if len(missing) > 0 && err == nil {
		err = fmt.Errorf("upstream has no %s any more", strings.Join(missing, ", "))
	}
	if err != nil {
		return fmt.Errorf("generating upstream's tables: %w", err)
	}
	if err := s.compile(ctx, overlay, o.output()); err != nil {
		return err
	}
	if err := os.Remove(o.tables); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing earlier rows: %w", err)
	}
	command := exec.CommandContext(ctx, s.binary, "-test.run="+tabled)
	command.Env = append(os.Environ(), "STOWAGE_UPSTREAM_TABLES="+o.tables)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("recording upstream's tables: %w\n%s", err, output)
	}
	return nil
}

func recording(name string, source []byte) (changed []byte, found []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil {
			continue
		}
		at, text := token.NoPos, inserted[function.Name.Name]
		if text != "" {
			at = rowOf(function)
		} else if slices.Contains(renamed, function.Name.Name) {
			at, text = function.Name.Pos(), "upstream_"
		}
		if at.IsValid() {
			edits, found = append(edits, edit{at, at, text}), append(found, function.Name.Name)
		}
	}
	return edited(file, source, edits), found, nil
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
