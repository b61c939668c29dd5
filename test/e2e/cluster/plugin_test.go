package cluster_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// password is what a Secret has, and a claim's owner wrote into an annotation.
const password = "correct-horse-battery-staple"

// plugin: kubectl stowage looks at an installation that is whole.
func plugin(n *namespace) {
	// Other specs make backends, which are not Ready for a moment.
	n.Soon("kubectl stowage doctor finds no fault, and says what it saw", func() error {
		report, err := n.stowage("", "doctor")
		for _, check := range []string{"CRDs", "manager", "leader", "node agents", "rights", "CSIDrivers", "registration", "mount propagation", "kernels", "backends"} {
			if err == nil && !strings.Contains(report, "\nOK        "+check+" ") {
				err = fmt.Errorf("%s isn't OK", check)
			}
		}
		if err != nil {
			err = fmt.Errorf("%w:\n%s", err, report)
		}
		return err
	})
	claim := n.claim(directories, "1Gi")
	claim.Annotations = map[string]string{"note": "password=" + password}
	scenario.Step("there are a Secret, and a claim with a password in an annotation", func() error {
		_, err := n.cluster.Kubectl(n.ctx, "", "--namespace="+n.name, "create", "secret", "generic", "hidden", "--from-literal=password="+password)
		return errors.Join(err, n.create(claim))
	})
	scenario.Step("the archive of kubectl stowage collect has neither, and has logs and objects", func() error {
		archive, err := n.stowage("", "collect", "--file=-")
		if err != nil {
			return err
		}
		return reportIsSafe(archive, claim.Name)
	})
	scenario.Step("they go", func() error { return n.remove(claim) })
}

// stowage runs the plug-in, and returns what it prints.
func (n *namespace) stowage(input string, arguments ...string) (string, error) {
	program := filepath.Join(apiserver.Repository(), "bin", "kubectl-stowage")
	return kube.Run(n.ctx, input, program, append([]string{"--kubeconfig=" + n.cluster.Kubeconfig()}, arguments...)...)
}

// reportIsSafe checks an archive: no file has the password, none is of Secrets, and there are the
// claim and the log of a manager.
func reportIsSafe(archive, claim string) error {
	zipped, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		return err
	}
	var names strings.Builder
	objects := map[string]string{}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(files)
		if err != nil || strings.Contains(string(content), password) || strings.Contains(header.Name, "secrets") {
			return fmt.Errorf("%s has a password, or that of Secrets (%w)", header.Name, err)
		}
		objects[path.Base(header.Name)] = string(content)
		fmt.Fprintln(&names, header.Name)
	}
	if !strings.Contains(objects["persistentvolumeclaims.yaml"], "name: "+claim) || !strings.Contains(objects["manager.log"], `"msg"`) {
		return fmt.Errorf("the claim or the log of a manager is missing in\n%s", &names)
	}
	return nil
}
