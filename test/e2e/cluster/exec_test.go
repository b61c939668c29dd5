package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// execPatience is how long a script in a pod may take: less than half of kube.Patience.
const execPatience = 2 * time.Minute

// sh is what a shell's script prints in a pod. A spec's report has each script without an end, even if what waits for the
// script tries again and succeeds.
func (n *namespace) sh(pod, script string) (string, error) {
	ctx, cancel := context.WithTimeout(n.ctx, execPatience)
	defer cancel()
	output, err := n.cluster.Kubectl(ctx, "", "exec", "--namespace="+n.name, pod, "--", "sh", "-c", script)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no end within %s: %w", execPatience, err)
		AddReportEntry("a script in pod "+pod+" has no end: what the nodes run", n.cluster.DescribeNodes(n.ctx))
	}
	return strings.TrimSpace(output), err
}

// does checks that a script succeeds in a pod.
func (n *namespace) does(pod, script string) error {
	_, err := n.sh(pod, script)
	return err
}

// says checks what a script prints in a pod.
func (n *namespace) says(pod, script, want string) error {
	got, err := n.sh(pod, script)
	if err == nil && got != want {
		err = fmt.Errorf("%q in %s prints %q, not %q", script, pod, got, want)
	}
	return err
}

// refuses checks that a script fails in a pod, with such a message.
func (n *namespace) refuses(pod, script, message string) error {
	_, err := n.sh(pod, script)
	if err == nil {
		return fmt.Errorf("%q in %s succeeds", script, pod)
	}
	if !strings.Contains(err.Error(), message) {
		return fmt.Errorf("it isn't for %q: %w", message, err)
	}
	return nil
}
