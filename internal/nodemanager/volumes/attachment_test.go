package volumes

import (
	"reflect"
	"testing"
)

func TestAnAttachmentSaysBothOrNothing(t *testing.T) {
	tests := map[string]struct {
		metadata map[string]string
		want     *Attachment
	}{
		"both":      {map[string]string{"device": "google-a", "serial": "a", "more": "x"}, &Attachment{Device: "google-a", Serial: "a"}},
		"no serial": {map[string]string{"device": "google-a"}, nil},
		"no device": {map[string]string{"serial": "a", "device": ""}, nil},
		"nothing":   {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := AttachmentOf(test.metadata); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
