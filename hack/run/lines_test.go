package main

import "testing"

func TestAnEffectInTheLogIsShown(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-23T17:00:00Z\tINFO\tbound\t{\"reconciling\": {\"name\":\"data\"}, \"claim\": \"default/data\", \"volume\": \"pvc-1\", \"took\": \"1.2s\"}\n": "bound claim=default/data volume=pvc-1 took=1.2s",
		"2026-11-23T17:00:00Z\tERROR\tReconciler error\t{\"claim\": \"default/data\"}\n":                                                                      "",
		"2026-11-23T17:00:00Z\tDEBUG\trecorded\t{\"claim\": \"default/data\"}\n":                                                                              "",
		"panic: no\n": "",
	} {
		if got := effectOf(line); got != want {
			t.Errorf("of %q: got %q, want %q", line, got, want)
		}
	}
}
