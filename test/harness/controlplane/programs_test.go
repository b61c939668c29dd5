package controlplane

import "testing"

func TestTheOverlayNamesTheControllersThatStowageReplaces(t *testing.T) {
	controllers, err := StandaloneControllers()
	if err != nil || controllers == "" || controllers[:2] != "*," {
		t.Errorf("%q, %v", controllers, err)
	}
}
