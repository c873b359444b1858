// SPDX-License-Identifier: MIT OR Apache-2.0
// Addresses and prefixes of IPv4 and IPv6, as numbers of 32 or 128 bits.

export interface Prefix {
  bits: 32 | 128;
  value: bigint;
  length: number;
}

/** Of `10.0.0.0/8`, `2001:db8::/32`, or one address; null when it is none. */
export function parsePrefix(text: string): Prefix | null {
  const [address, length, more] = text.trim().split("/");
  const parsed = address === undefined || more !== undefined ? null : parseAddress(address);
  if (!parsed) return null;
  const wanted = length === undefined ? parsed.bits : number(length, parsed.bits);
  return wanted === null ? null : cut({ ...parsed, length: wanted });
}

/** The address of `10.0.0.1:443` or `[2001:db8::1]:443`. */
export function addressOf(socket: string): string {
  return socket.slice(0, socket.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}

export function contains(prefix: Prefix, address: Prefix): boolean {
  if (prefix.bits !== address.bits || prefix.length > address.length) return false;
  return cut({ ...address, length: prefix.length }).value === prefix.value;
}

/** The network that a flow's peer is shown under: its /24 or /64. */
export function pathOf(socket: string): string {
  const address = parsePrefix(addressOf(socket));
  if (!address) return socket;
  return show(cut({ ...address, length: address.bits === 32 ? 24 : 64 }));
}

export function show(prefix: Prefix): string {
  const address = prefix.bits === 32 ? showV4(prefix.value) : showV6(prefix.value);
  return prefix.length === prefix.bits ? address : `${address}/${prefix.length}`;
}

function cut(prefix: Prefix): Prefix {
  const host = BigInt(prefix.bits - prefix.length);
  return { ...prefix, value: (prefix.value >> host) << host };
}

function number(text: string, most: number): number | null {
  if (!/^\d{1,3}$/.test(text)) return null;
  const value = Number(text);
  return value <= most ? value : null;
}

function parseAddress(text: string): Prefix | null {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

function parseV4(text: string): Prefix | null {
  const bytes = text.split(".").map((part) => number(part, 255));
  if (bytes.length !== 4 || bytes.includes(null)) return null;
  const value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte ?? 0), 0n);
  return { bits: 32, value, length: 32 };
}

function parseV6(text: string): Prefix | null {
  const [head, tail, more] = text.split("::");
  if (head === undefined || more !== undefined) return null;
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  if (!front || !back) return null;
  const missing = 8 - front.length - back.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const all = [...front, ...new Array<bigint>(missing).fill(0n), ...back];
  const value = all.reduce((sum, group) => (sum << 16n) | group, 0n);
  // An IPv4 peer of an IPv6 socket is an IPv4 peer.
  if (value >> 32n === 0xffffn) return { bits: 32, value: value & 0xffff_ffffn, length: 32 };
  return { bits: 128, value, length: 128 };
}

/** Groups of 16 bits; the last may be a dotted quad, which is two. */
function groups(text: string): bigint[] | null {
  if (text === "") return [];
  const all: bigint[] = [];
  for (const part of text.split(":")) {
    const quad = part.includes(".") ? parseV4(part) : null;
    if (quad) all.push(quad.value >> 16n, quad.value & 0xffffn);
    else if (/^[0-9a-f]{1,4}$/i.test(part)) all.push(BigInt(`0x${part}`));
    else return null;
  }
  return all;
}

function showV4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");
}

/** RFC 5952: the longest run of zeros becomes "::". */
function showV6(value: bigint): string {
  const parts = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  const runs = [...parts.map((part) => (part === "0" ? "0" : "x")).join("").matchAll(/0{2,}/g)];
  const longest = runs.reduce<RegExpMatchArray | null>((best, run) => (best && best[0].length >= run[0].length ? best : run), null);
  if (!longest) return parts.join(":");
  const at = longest.index ?? 0;
  return `${parts.slice(0, at).join(":")}::${parts.slice(at + longest[0].length).join(":")}`;
}
