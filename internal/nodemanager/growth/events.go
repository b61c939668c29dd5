package growth

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func (g *Growth) tellGrown(found *growing, has resource.Quantity) {
	const note = "the file system of volume %s has grown: the claim has %s now"
	for i := range found.pods {
		g.Events.Eventf(&found.pods[i], found.claim, corev1.EventTypeNormal, fileSystemGrown, "Expanding", note, found.volume.Name, has.String())
	}
	g.Events.Eventf(found.claim, nil, corev1.EventTypeNormal, fileSystemGrown, "Expanding", note, found.volume.Name, has.String())
}

func (g *Growth) tellNotGrown(found *growing, problem error) {
	for i := range found.pods {
		g.Events.Eventf(&found.pods[i], found.claim, corev1.EventTypeWarning, growthFailed, "Expanding", "%v", problem)
	}
	g.Events.Eventf(found.claim, nil, corev1.EventTypeWarning, growthFailed, "Expanding", "%v", problem)
}
