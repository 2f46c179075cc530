// What the model takes, and inputs as bytes: from the buffer, from a picture of any size, from numbers.

export const isPicture = (inputs) =>
  inputs?.dtype === "uint8" && (inputs.shape.length === 2 || (inputs.shape.length === 3 && [1, 3].includes(inputs.shape[2])));

export function inWords(inputs) {
  const [height, width, channels = 1] = inputs.shape;
  if (isPicture(inputs)) return `${width} × ${height} pixels, ${channels === 1 ? "grey" : "colour"}`;
  return `${inputs.shape.join(" × ")} numbers`;
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export function numbersOf({ dtype, bytes }) {
  const raw = fromBase64(bytes);
  return dtype === "float32" ? new Float32Array(raw.buffer) : raw;
}

// A picture -> bytes of the model's shape, and in words what had to be done to it. The middle is kept.
export function fitted(picture, inputs) {
  const [height, width, channels = 1] = inputs.shape;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const scale = Math.max(width / picture.width, height / picture.height);
  const [across, down] = [picture.width * scale, picture.height * scale];
  context.fillRect(0, 0, width, height); // black behind what is transparent
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = scale !== 1;
  context.drawImage(picture, (width - across) / 2, (height - down) / 2, across, down);
  const pixels = context.getImageData(0, 0, width, height).data;
  const { bytes, coloured } = channels === 1 ? grey(pixels) : { bytes: rgb(pixels), coloured: false };
  const done = [];
  if (Math.abs(across - width) >= 1 || Math.abs(down - height) >= 1) done.push("cut to its middle");
  if (scale !== 1) done.push(`scaled from ${picture.width} × ${picture.height} to ${width} × ${height}`);
  if (coloured) done.push("turned to grey");
  return { bytes, words: done.length ? `${done.join(", ")} in your browser` : "" };
}

function grey(pixels) {
  const bytes = new Uint8Array(pixels.length / 4);
  let coloured = false;
  for (let k = 0; k < bytes.length; k++) {
    const [red, green, blue] = pixels.subarray(4 * k, 4 * k + 3);
    bytes[k] = Math.round(0.299 * red + 0.587 * green + 0.114 * blue);
    coloured ||= red !== green || green !== blue;
  }
  return { bytes, coloured };
}

function rgb(pixels) {
  const bytes = new Uint8Array((pixels.length / 4) * 3);
  for (let k = 0; k < pixels.length / 4; k++) bytes.set(pixels.subarray(4 * k, 4 * k + 3), 3 * k);
  return bytes;
}

// The bytes of an input on a canvas of its size: what the model sees, not what was given.
export function paint(canvas, bytes, inputs) {
  const [height, width, channels = 1] = inputs.shape;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let k = 0; k < width * height; k++) {
    for (let c = 0; c < 3; c++) image.data[4 * k + c] = bytes[channels === 1 ? k : 3 * k + c];
    image.data[4 * k + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}
