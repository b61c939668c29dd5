package cluster

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// A shell waits this long for names, and shows this many.
	completionTimeout = 3 * time.Second
	mostCompletions   = 500
)

// Complete returns the names of objects of a kind that begin as typed; in the namespace of
// the flags, if the kind has namespaces. Only metadata is read.
func (c *Cluster) Complete(kind schema.GroupVersionKind, namespaced bool, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	reader, err := c.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	options := []client.ListOption{client.Limit(mostCompletions)}
	if namespaced {
		namespace, err := c.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		options = append(options, client.InNamespace(namespace))
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, typed) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteFlag completes the values of a flag with the names of cluster-scoped objects. kind
// is that of their list.
func (c *Cluster) CompleteFlag(command *cobra.Command, flag string, kind schema.GroupVersionKind) {
	_ = command.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.Complete(kind, false, typed)
	})
}
