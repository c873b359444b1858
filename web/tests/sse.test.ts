// SPDX-License-Identifier: MIT OR Apache-2.0
import { expect, test } from "vitest";
import { FrameReader, readFrames, type Frame } from "../src/sse";

const STREAM = 'event: flows\ndata: [{"a":1}]\n\n:\n\ndata: x\ndata:y\n\nevent: gone\n\nevent: lost\ndata: {"ü": 2}\n\n';
const FRAMES = [
  { event: "flows", data: '[{"a":1}]' },
  { event: "message", data: "x\ny" },
  { event: "lost", data: '{"ü": 2}' },
];

test("frames are the same wherever the stream is cut", () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const reader = new FrameReader();
    const frames = [...reader.push(STREAM.slice(0, at)), ...reader.push(STREAM.slice(at))];
    expect(frames, `cut at ${at}`).toEqual(FRAMES);
  }
});

test("a letter of two bytes that is cut is whole", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  const frames: Frame[] = [];
  await readFrames(body, (frame) => frames.push(frame));
  expect(frames).toEqual(FRAMES);
});
