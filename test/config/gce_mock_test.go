package config_test

import (
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var _ = Describe("the cloud to try", func() {
	It("is accepted beside what is installed", func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("rbac")))
		apply(ctx, built(ctx, folder("gce-mock")))
	})

	It("starts with flags that it has", func(ctx SpecContext) {
		mock := found[appsv1.Deployment](built(ctx, folder("gce-mock")), "Deployment", "stowage-gce-mock")
		container := mock.Spec.Template.Spec.Containers[0]
		help := exec.CommandContext(ctx, "go", append(append([]string{"run", "./cmd/gce-mock"}, container.Args...), "--help")...)
		help.Dir = apiserver.Repository()
		text, err := help.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
	})
})
