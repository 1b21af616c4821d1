package harness

// SharedKeys are those of servers with a store that others use as well.
var SharedKeys = [][]byte{[]byte("a secret of 16 bytes or more")}
