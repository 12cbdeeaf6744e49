// Pictures of one size as one PNG that moves (APNG): at most 256 colours, and of each picture only the part that changed.

import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** `frames`: each a PNG as the browser takes it (8 bits a channel), and how many seconds it stays. */
export function movingPng(frames) {
  const pictures = frames.map(({ png }) => decode(png));
  const { width, height } = pictures[0];
  const palette = new Palette(pictures);
  const indexed = pictures.map((picture) => palette.indices(picture));
  const chunks = [
    chunk('IHDR', numbers([width, 4], [height, 4], [8, 1], [3, 1], [0, 1], [0, 1], [0, 1])),
    chunk('acTL', numbers([frames.length, 4], [0, 4])),
    chunk('PLTE', palette.bytes()),
  ];
  let sequence = 0;
  for (const [at, { seconds }] of frames.entries()) {
    const part = at === 0 ? { x: 0, y: 0, width, height } : difference(indexed[at - 1], indexed[at], width, height);
    const control = [[sequence++, 4], [part.width, 4], [part.height, 4], [part.x, 4], [part.y, 4], [Math.round(seconds * 100), 2], [100, 2], [0, 1], [0, 1]];
    chunks.push(chunk('fcTL', numbers(...control)));
    const data = deflateSync(rows(indexed[at], width, part), { level: 9 });
    chunks.push(at === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers([sequence++, 4]), data])));
  }
  return Buffer.concat([SIGNATURE, ...chunks, chunk('IEND', Buffer.alloc(0))]);
}

/** The pixels of a PNG without interlacing, three bytes each. */
function decode(png) {
  const data = [];
  let header;
  for (let at = 8; at < png.length; ) {
    const [size, type] = [png.readUInt32BE(at), png.toString('latin1', at + 4, at + 8)];
    const body = png.subarray(at + 8, at + 8 + size);
    if (type === 'IHDR') header = { width: body.readUInt32BE(0), height: body.readUInt32BE(4), channels: body[9] === 6 ? 4 : 3 };
    if (type === 'IDAT') data.push(body);
    at += size + 12;
  }
  const { width, height, channels } = header;
  const [raw, stride] = [inflateSync(Buffer.concat(data)), width * channels];
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x >= channels ? pixels[y * stride + x - channels] : 0;
      const up = y > 0 ? pixels[(y - 1) * stride + x] : 0;
      const corner = x >= channels && y > 0 ? pixels[(y - 1) * stride + x - channels] : 0;
      pixels[y * stride + x] = (raw[y * (stride + 1) + 1 + x] + predicted(filter, left, up, corner)) & 0xff;
    }
  }
  return { width, height, channels, pixels };
}

function predicted(filter, left, up, corner) {
  switch (filter) {
    case 1: return left;
    case 2: return up;
    case 3: return (left + up) >> 1;
    case 4: {
      const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
      return a <= b && a <= c ? left : b <= c ? up : corner;
    }
    default: return 0;
  }
}

/** The colours of which there is most in all pictures. Every other becomes the nearest of them. */
class Palette {
  #colours;
  #known = new Map();

  constructor(pictures) {
    const counts = new Map();
    for (const { pixels, channels } of pictures) {
      for (let at = 0; at < pixels.length; at += channels) {
        const colour = coarse(pixels.readUIntBE(at, 3));
        counts.set(colour, (counts.get(colour) ?? 0) + 1);
      }
    }
    this.#colours = [...counts].toSorted(([, a], [, b]) => b - a).slice(0, 256).map(([colour]) => colour);
    this.#colours.forEach((colour, at) => this.#known.set(colour, at));
  }

  indices({ pixels, channels }) {
    const found = Buffer.alloc(pixels.length / channels);
    for (let at = 0; at < found.length; at += 1) found[at] = this.#index(coarse(pixels.readUIntBE(at * channels, 3)));
    return found;
  }

  #index(colour) {
    const index = this.#known.get(colour) ?? this.#nearest(colour);
    this.#known.set(colour, index);
    return index;
  }

  #nearest(colour) {
    const parts = (one) => [one >> 16, (one >> 8) & 0xff, one & 0xff];
    const wanted = parts(colour);
    const distance = (one) => parts(one).reduce((sum, part, at) => sum + (part - wanted[at]) ** 2, 0);
    return this.#colours.reduce((best, one, at) => (distance(one) < distance(this.#colours[best]) ? at : best), 0);
  }

  bytes() {
    return Buffer.concat(this.#colours.map((colour) => numbers([colour, 3])));
  }
}

/** Shades that nobody can tell apart are one. */
const coarse = (colour) => (colour & 0xfcfcfc) | ((colour >> 6) & 0x030303);

/** The smallest part that holds all that changed; one pixel if nothing did. */
function difference(before, after, width, height) {
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let at = 0; at < after.length; at += 1) {
    if (before[at] === after[at]) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
  }
  return right < 0 ? { x: 0, y: 0, width: 1, height: 1 } : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

function rows(indices, width, part) {
  const lines = Array.from({ length: part.height }, (_, y) => {
    const start = (part.y + y) * width + part.x;
    return Buffer.concat([Buffer.from([0]), indices.subarray(start, start + part.width)]);
  });
  return Buffer.concat(lines);
}

function numbers(...fields) {
  const bytes = Buffer.alloc(fields.reduce((sum, [, size]) => sum + size, 0));
  let at = 0;
  for (const [value, size] of fields) at = bytes.writeUIntBE(value, at, size);
  return bytes;
}

function chunk(type, body) {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  return Buffer.concat([numbers([body.length, 4]), typed, numbers([crc32(typed), 4])]);
}
