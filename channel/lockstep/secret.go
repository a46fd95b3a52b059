package lockstep

import (
	"crypto/sha256"
	"encoding/binary"
)

// proof is what player must send to show that it gets what is sent to its transport: nobody can compute it without
// the secret. It is another one for each session and each Connect.
func (h *Host) proof(player int, session uint32) uint64 {
	var b [44]byte
	copy(b[:], h.cfg.Secret[:])
	binary.LittleEndian.PutUint32(b[32:], uint32(player))
	binary.LittleEndian.PutUint32(b[36:], session)
	binary.LittleEndian.PutUint32(b[40:], h.clients[player].connects)
	sum := sha256.Sum256(b[:])
	return max(binary.LittleEndian.Uint64(sum[:]), 1)
}

// keyOf is the number that the packets of a session bear: whoever saw the challenge knows it.
func keyOf(proof uint64) uint32 { return uint32(proof>>32) ^ uint32(proof) }
