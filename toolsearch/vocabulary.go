package toolsearch

import "strings"

// vocabulary has what users say, and what tools say in place of it. It does not change.
type vocabulary struct {
	said    map[string][]saying // by the stems of what users say, joined with spaces
	longest int                 // words of a key of said, at most
	intents map[string]intent   // by stem
	stop    map[string]bool     // words that say nothing
}

// saying is one way in which tools say something: all of its words together.
type saying struct {
	stems  []string
	weight float64
	hint   bool // it orders what other words find
}

// intent is what a query is for.
type intent int

const (
	unknown intent = iota
	reads
	writes
)

// The weights of the ways to say a word.
const (
	sameWeight    = 1    // the word itself, and Options.Words
	generalWeight = 0.75 // a word of general
	nearWeight    = 0.6  // a word that resembles it
	hintWeight    = 0.4  // of what hints find
)

func newVocabulary(words map[string]string) *vocabulary {
	v := &vocabulary{said: map[string][]saying{}, intents: map[string]intent{}, stop: map[string]bool{}}
	for line := range strings.Lines(general) {
		means, says, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for say := range strings.SplitSeq(says, ", ") {
			v.add(say, means, generalWeight)
		}
	}
	for say, means := range words {
		for one := range strings.SplitSeq(means, ",") {
			v.add(say, one, sameWeight)
		}
	}
	for _, w := range strings.Fields(stopWords) {
		v.stop[w] = true
	}
	for _, w := range strings.Fields(reading) {
		v.intents[stemOf(w)] = reads
	}
	for _, w := range strings.Fields(writing) {
		v.intents[stemOf(w)] = writes
	}
	return v
}

func (v *vocabulary) add(say, means string, weight float64) {
	means, hint := strings.CutSuffix(means, "?")
	key := stemsOf(say)
	v.longest = max(v.longest, len(key))
	at := strings.Join(key, " ")
	v.said[at] = append(v.said[at], saying{stemsOf(means), weight, hint})
}

// stemsOf returns the stems of the words of a text.
func stemsOf(text string) (stems []string) {
	for _, w := range wordsOf(text) {
		stems = append(stems, w.stem)
	}
	return stems
}

// lookUp returns what tools say in place of the first n words, as many as it knows together.
func (v *vocabulary) lookUp(words []word) (said []saying, n int) {
	stems := make([]string, min(v.longest, len(words)))
	for i := range stems {
		stems[i] = words[i].stem
	}
	for n = len(stems); n > 0; n-- {
		if said = v.said[strings.Join(stems[:n], " ")]; said != nil {
			return said, n
		}
	}
	return nil, 0
}

// intentOf returns what the first word that says so says.
func (v *vocabulary) intentOf(concepts []concept) intent {
	for _, c := range concepts {
		if is := v.intents[c.stem]; is != unknown {
			return is
		}
		for _, s := range c.said {
			if len(s.stems) == 1 && v.intents[s.stems[0]] != unknown {
				return v.intents[s.stems[0]]
			}
		}
	}
	return unknown
}

// general has words of tools of any kind, and after the colon what users say in place of them.
// A question mark is for a hint.
const general = `create: make, new, add, start, open, write, set up, setup, build, generate, register, draft, compose, spin up, publish, submit, raise, found, introduce, define, establish, propose, record
add: put, give, grant, attach, invite, assign, include, append, insert, link, connect, allow, new, join, let in, hand
delete: remove, erase, drop, get rid of, destroy, wipe, clear, throw out, throw away, revoke, uninstall, clean up, trash, scrap, discard, purge, take down, tear down, pull
remove: delete, kick, kick out, take away, take off, take out, drop, get rid of, revoke, detach, strip, lift, unassign, expel, throw out
update: change, edit, modify, rename, set, adjust, fix, correct, replace, alter, amend, rewrite, revise, tweak, switch, turn, put, customize, extend
set: change, update, put, assign, configure, define, choose, pick, specify, adjust, store, require, make, replace, limit, restrict
get: show, see, view, look at, look, look up, read, fetch, display, check, find, find out, retrieve, inspect, download, give me, describe, details, open, examine, print, pull up, grab
list: show, see, view, display, find, browse, enumerate, overview, give me
check: verify, test, see if, whether, validate, confirm, make sure
search: find, look for, hunt for, locate, query, discover
list?: all, every, everybody, everyone, everything, which, who, what, any
get?: what, is, are, does, do, how, how much, how many, how long, how often, how far, when, where, tell, did, has
check?: is, are, does, do, can, has, did, am
authenticated?: my, me, i, mine, myself, am
cancel: stop, abort, halt, kill, call off, terminate, end, interrupt, withdraw
stop: shut down, halt, power off, end, turn off, pause
start: boot, boot up, turn on, launch, resume, begin, wake up, kick off, fire up, power on
run: trigger, launch, execute, start, kick off, fire
enable: turn on, turned on, activate, switch on, allow, start, permit
disable: turn off, turned off, deactivate, switch off, stop, forbid, prevent
retry: try again, rerun, restart, run again, redo, repeat, resend
rerun: try again, retry, restart, run again, redo, repeat
approve: accept, allow, confirm, sign off, ok, okay, let through
decline: reject, refuse, turn down, deny, say no
reject: decline, deny, refuse, turn down
dismiss: reject, ignore, throw out, close, discard
restore: bring back, undo, recover, get back, undelete, reinstate
rename: change the name, new name, call it
transfer: move, hand over, give away, change owner
merge: combine, join, unify, integrate
copy: duplicate, clone, replicate
duplicate: copy, clone
suspend: block, pause, ban, freeze, temporarily
block: ban, blacklist, stop, forbid
unblock: unban, let back
lock: freeze, stop people, close, protect
unlock: unfreeze, reopen
subscribe: follow, watch, get notified, sign up
unsubscribe: unfollow, mute, stop following, leave me alone
subscription: mute, follow, unfollow, plan
follow: subscribe
convert: turn, change, transform
render: turn, preview, convert, draw
export: download, save, back up, extract
upload: attach, put, add, send, push
import: load, bring in, bring over, migrate, move
send: deliver, mail, post, message
comment: reply, remark, answer, note, say, write, respond, message, feedback
request: ask
assign: give, hand, allocate, delegate
move: relocate, shift, transfer, reorder
review: look over, inspect, check, look at
user: person, people, who, somebody, someone, account, anyone, anybody
account: user, profile
member: people, person, employee, who, belong, everybody, everyone, user
membership: belong, member, role, join
owner: belongs to, responsible
team: group, squad, crew
group: team
organization: company, org, firm, business
org: company, organization, firm, business
enterprise: company, corporation
repository: repo, codebase
directory: folder
folder: directory
file: document, attachment
content: text, body, file
image: picture, photo
secret: password, credential, secure value, token
credential: password, login, secret
variable: value, setting
token: key, credential
key: token
permission: rights, access, role, allowed, privilege, who can
access: permission, rights, allowed, reach, use
configuration: settings, options, config, preferences, setup
setting: configuration, options, preference, policy
policy: rule, setting
rule: policy, requirement
limit: quota, cap, restrict, maximum, restriction
restriction: limit, only
usage: consumption, use, used, using, spend, space, how much
billing: cost, charge, charged, pay, paid, price, spend, bill, spending, expense, money
cost: price, billing, charge, spend
invoice: bill
label: tag, category, mark
tag: label
type: kind, sort, category
status: state, progress, how far, going, health, outcome
state: status
log: history, output
event: history, activity, happened, action
activity: history, events, happened, recently
history: log, changes, past
audit: history, who did
revision: version, older version
version: release, edition, revision
release: version
notification: alert, message, inbox
alert: warning, problem, notification, finding
issue: problem, bug, defect
vulnerability: security hole, vulnerable, security problem, weakness
security: safety, secure
statistics: stats, numbers, figures, metrics
stats: statistics, numbers, figures
count: number, how many, total
email: mail, address
name: called, title
description: text, summary
environment: env, stage
template: boilerplate, sample, example
latest: newest, last, most recent, current
public: visible, open
private: hidden
pending: waiting, open, outstanding
invitation: invite, invited
attachment: file
date: day
schedule: plan, calendar
meeting: appointment, call
event: appointment, meeting
customer: client, buyer
order: purchase
payment: transaction
product: item, article
message: text, chat, note
channel: room
contact: person
webhook: callback, call my server, notify my server, ping, http callback
administrator: admin
reviewer: who reviews, approver
contributor: who wrote, author
author: who wrote, writer
view: visitor, traffic
traffic: visitor
reaction: emoji, thumbs up, like
dependency: library, package
dependencies: libraries, packages
branch: branches
archive: zip, tar`

// reading has words of queries that change nothing, and writing those of others.
const (
	reading = `get list search check show find read view see fetch count download display look what which who how when where is are does do did can tell has whether am browse inspect`
	writing = `create delete remove update set add make change edit rename cancel stop enable disable put give grant assign attach invite publish register open write start restart
		rerun run approve reject lock unlock merge move transfer upload store save subscribe block close reopen revoke replace dismiss restore mark request mute let`
)

// stopWords say nothing about what a tool does, in English, German, Russian, French and Spanish.
const stopWords = `a an the this that these those it its of to for from in on at by with as and or but so if than then
	i me my mine we our us you your he him his she her they them their is are was were be been am do does did have has had can could will would shall should may might must
	want need like please how what which who whom whose when where why there here some any each all every just only also too into onto about out up off over under
	use using via let not no one ones thing things something anything s t re ve ll d m don
	der die das den dem des ein eine einen einem eines und oder ich du er sie es wir ihr mein dein wie was wer wo ist sind bitte zu im am auf mit von für nicht
	и в на не я ты он она мы вы как что это мне мой по с у о из за для к от
	le la les un une des et ou je tu il elle nous vous mon de du el los las una y que mi para por`
