package program

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns how to reach the API server, and how often. Without a kubeconfig it is the pod's
// service account: clientcmd would log flags then that programs do not have.
func (o *Options) Config() (*rest.Config, error) {
	var config *rest.Config
	var err error
	if o.Kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	if o.Burst == 0 && o.QPS > 0 {
		config.Burst = max(1, int(2*o.QPS))
	}
	return config, nil
}
