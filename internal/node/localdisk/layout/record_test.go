package layout

import (
	"strings"
	"testing"
)

func TestOnlyARecordThatFitsTheAPIIsTaken(t *testing.T) {
	long := strings.Repeat("x", 254)
	for content, taken := range map[string]bool{
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"orders","uid":"1"},"layout":"Image"}`:            true,
		`{"id":"pvc-2","claim":{"namespace":"shop","name":"orders","uid":"1"},"layout":"Image"}`:            false,
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"orders"},"layout":"Image"}`:                      false,
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"` + long + `","uid":"1"},"layout":"Image"}`:      false,
		`{"id":"pvc-1","claim":{"namespace":"` + long + `","name":"orders","uid":"1"},"layout":"Image"}`:    false,
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"orders","uid":"` + long + `"},"layout":"Image"}`: false,
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"orders","uid":"1"},"layout":"Else"}`:             false,
		`{"id":"pvc-1","claim":{"namespace":"shop","name":"orders","uid":"1"},"layout":"Image"`:             false,
		`null`: false, `[]`: false, ``: false, "\xff": false,
	} {
		if record := parseRecord([]byte(content), "pvc-1"); (record != nil) != taken {
			t.Errorf("%q gave %v", content, record)
		}
	}
}
