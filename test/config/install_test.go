package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// made runs a target of the Makefile with variables.
func made(ctx SpecContext, target string, variables ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "make", append([]string{target}, variables...)...)
	command.Dir = apiserver.Repository()
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return string(output)
}

// deployed is what `make deploy` of docs/install.md gives to kubectl.
func deployed(ctx SpecContext, variables ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	kubectl, applied := filepath.Join(folder, "kubectl"), filepath.Join(folder, "applied")
	Expect(os.WriteFile(kubectl, []byte("#!/bin/sh\n[ \"$1\" != apply ] || exec cat >"+applied+"\n"), 0o700)).To(Succeed())
	made(ctx, "deploy", append(variables, "KUBECTL="+kubectl)...)
	text, err := os.ReadFile(applied)
	Expect(err).NotTo(HaveOccurred())
	return decoded(text)
}

var _ = Describe("make deploy", Serial, func() {
	const version = "v1.2.3"

	It("installs the images that it is given, with the version on every object", func(ctx SpecContext) {
		const manager, agent = "registry.example.com:5000/m:one", "registry.example.com/a:two"
		pinned := agent + "@sha256:" + strings.Repeat("a", 64)
		objects := deployed(ctx, "VERSION="+version, "IMG="+manager, "AGENT_IMG="+pinned)
		running := containers(objects)
		Expect(running[0].Image).To(Equal(manager))
		Expect(running[1].Image).To(Equal(pinned))
		for _, object := range objects {
			Expect(object.GetLabels()).To(HaveKeyWithValue(versionLabel, version), object.GetName())
		}
		apply(ctx, objects)
	})

	It("installs the version's own images where it is given none", func(ctx SpecContext) {
		for _, container := range containers(deployed(ctx, "VERSION="+version, "OVERLAY=standalone")) {
			Expect(container.Image).To(MatchRegexp(`^ghcr\.io/stowage-dev/stowage-[-a-z]+:v1\.2\.3$`))
		}
	})
})
