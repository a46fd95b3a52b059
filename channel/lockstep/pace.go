package lockstep

import "time"

// pace is a token bucket in bytes.
type pace struct {
	tokens int64
	at     time.Duration
	owed   int64 // byte-nanoseconds that don't make a byte yet
}

// wait is how long n bytes have to wait; 0 takes them. burst is at least n.
func (p *pace) wait(now time.Duration, n int, rate, burst int64) time.Duration {
	if dt := min(max(now-p.at, 0), maxTick); now != p.at {
		p.owed += int64(dt) * rate
		p.tokens += p.owed / int64(time.Second)
		p.owed %= int64(time.Second)
		p.at = now
	}
	p.tokens = min(p.tokens, burst)
	if lack := int64(n) - p.tokens; lack > 0 {
		return time.Duration(lack*int64(time.Second)/rate + 1)
	}
	p.tokens -= int64(n)
	return 0
}

// inputBudget is how many bytes of commands a player may still send: InputRate more for each turn, up to eight
// turns' MaxInput. Both ends count alike, turn by turn from the player's Joined event on.
type inputBudget struct{ left int }

func (b *inputBudget) begin(c *Config) { b.left = c.MaxInput }

// spend ends a turn of n bytes.
func (b *inputBudget) spend(c *Config, n int) {
	b.left = min(b.left-n+c.InputRate, 8*c.MaxInput)
}
