// Package share bounds the work on an NFS server, and translates its errors.
//
// Each operation of the backend opens its share here. So a silent server blocks few operations, for
// a limited time, and none on other servers. The package knows neither volumes nor how files are
// reached: see tree.
package share
