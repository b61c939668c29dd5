// Package recycle empties a directory that people made, for volumes with reclaim policy Recycle.
//
// The backend's Kind opens the directory's server and calls it until it returns nil. It moves all
// content aside first and removes it there, so a stale manager can't remove what a new claim wrote.
// It removes nothing from the share of a StorageBackend.
package recycle
