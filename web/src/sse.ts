// SPDX-License-Identifier: MIT OR Apache-2.0
// Server-sent events out of a fetch: EventSource cannot send the token.

export interface Frame {
  event: string;
  data: string;
}

/** Cuts a stream of text into frames; what is not whole yet waits. */
export class FrameReader {
  private rest = "";

  *push(text: string): Generator<Frame> {
    this.rest += text;
    let end;
    while ((end = this.rest.indexOf("\n\n")) >= 0) {
      const frame = readFrame(this.rest.slice(0, end));
      this.rest = this.rest.slice(end + 2);
      if (frame) yield frame;
    }
  }
}

/** None for a frame without data, as the comments are that keep the connection alive. */
function readFrame(text: string): Frame | null {
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const [field, value] = cut(line);
    if (field === "event") event = value;
    if (field === "data") data.push(value);
  }
  return data.length > 0 ? { event, data: data.join("\n") } : null;
}

function cut(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}

/** Reads a stream to its end, frame by frame. */
export async function readFrames(
  body: ReadableStream<Uint8Array>,
  take: (frame: Frame) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const frames = new FrameReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    for (const frame of frames.push(decoder.decode(value, { stream: true }))) take(frame);
  }
}
