package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type suite struct {
	name, binary string
	modules      string
	tests        []string
}

func build(ctx context.Context, output string) ([]suite, error) {
	upstream, modules, err := findUpstream(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(output); err != nil {
		return nil, err
	}
	var built []suite
	for _, name := range suites {
		s, anywhere := suite{name: name, modules: modules}, false
		from := filepath.Join(upstream, "test", "integration", name)
		overlay, err := s.generate(from, output, func(file string, source []byte) ([]byte, error) {
			text, had, err := rewrite(file, source)
			if err != nil {
				return nil, err
			}
			tests, err := testsOf(file, source)
			s.tests, anywhere = append(s.tests, tests...), anywhere || had
			return text, err
		})
		if err == nil && !anywhere {
			err = errNothingReplaced
		}
		if err != nil {
			return nil, fmt.Errorf("generating suite %s: %w", name, err)
		}
		if err := s.compile(ctx, overlay, output); err != nil {
			return nil, err
		}
		built = append(built, s)
	}
	return built, nil
}

// findUpstream is the folder of upstream's module, and the one that all modules are in.
func findUpstream(ctx context.Context) (upstream, modules string, err error) {
	found, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", "", fmt.Errorf("finding upstream's module: %w", err)
	}
	upstream = strings.TrimSpace(string(found))
	return upstream, strings.TrimSuffix(upstream, filepath.Join("k8s.io", filepath.Base(upstream))), nil
}

func (s *suite) compile(ctx context.Context, overlay map[string]string, output string) error {
	content, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	file := filepath.Join(output, s.name+".json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	fmt.Printf("building upstream's suite %s (minutes, the first time)\n", s.name)
	s.binary = filepath.Join(output, s.name+".test")
	// The flags of the control plane's build: what is in its cache isn't compiled again.
	command := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-vet=off", "-tags", "tables", "-overlay", file, "-o", s.binary, "./"+s.name)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building upstream's suite %s: %w\n%s", s.name, err, output)
	}
	return nil
}

type change func(file string, source []byte) ([]byte, error)

// generate writes copies of upstream's files, each as change makes it, and says of which
// files of this module they are to be taken for the content: the go command replaces none
// of another module.
func (s *suite) generate(from, output string, change change) (overlay map[string]string, err error) {
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return nil, err
	}
	here, err := filepath.Abs(s.name)
	if err != nil {
		return nil, err
	}
	to := filepath.Join(output, s.name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	overlay = map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text, err := change(file, source)
		if err != nil {
			return nil, err
		}
		// A name that ended in .go would make it one of the packages of the checkout.
		generated := filepath.Join(to, filepath.Base(file)+".txt")
		if err := os.WriteFile(generated, text, 0o600); err != nil {
			return nil, err
		}
		overlay[filepath.Join(here, filepath.Base(file))] = generated
	}
	return overlay, nil
}
