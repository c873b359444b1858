// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import { addressOf, contains, parsePrefix, pathOf, show, type Prefix } from "../src/prefix";

const of = (text: string): Prefix => {
  const prefix = parsePrefix(text);
  if (!prefix) throw new Error(`${text} is no prefix`);
  return prefix;
};

test("what is written is shown in the canonical form", () => {
  const forms: [string, string][] = [
    ["10.1.2.3", "10.1.2.3"],
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["2001:DB8::0:1", "2001:db8::1"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:1:2:3:4:5:6/64", "2001:db8:1:2::/64"],
    ["::", "::"],
    ["1::/0", "::/0"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
    ["1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"],
  ];
  for (const [text, shown] of forms) expect(show(of(text)), text).toBe(shown);
});

test("what is no prefix is none", () => {
  const none = ["", "10", "10.1.2", "10.1.2.3.4", "10.1.2.256", "10.1.2.3/33", "10.1.2.3/", "10.1.2.3/8/8", "1::2::3"];
  const more = [":", "1:2:3", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "g::", "::/129", "12345::", "<b>", "-1.2.3.4"];
  for (const text of [...none, ...more]) expect(parsePrefix(text), text).toBeNull();
});

test("a prefix contains what begins as it does, of its own family", () => {
  expect(contains(of("10.0.0.0/8"), of("10.255.0.1"))).toBe(true);
  expect(contains(of("10.0.0.0/8"), of("11.0.0.1"))).toBe(false);
  expect(contains(of("10.0.0.0/24"), of("10.0.0.0/8"))).toBe(false);
  expect(contains(of("0.0.0.0/0"), of("2001:db8::1"))).toBe(false);
  expect(contains(of("::/0"), of("2001:db8::1"))).toBe(true);
  expect(contains(of("2001:db8::/33"), of("2001:db8:8000::1"))).toBe(false);
});

test("a flow's path is its peer's /24 or /64", () => {
  expect(addressOf("[2001:db8::1]:443")).toBe("2001:db8::1");
  expect(pathOf("192.0.2.77:5201")).toBe("192.0.2.0/24");
  expect(pathOf("[2001:db8:0:7:1::2]:443")).toBe("2001:db8:0:7::/64");
  expect(pathOf("[::ffff:192.0.2.77]:443")).toBe("192.0.2.0/24");
});
