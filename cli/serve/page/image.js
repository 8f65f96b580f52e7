// Images, given in part and completed.
'use strict';

let original = null;  // RGB of the image to complete

// Where nobody has chosen an image: sky, ground and a sun.
function anImage(size) {
  const canvas = new OffscreenCanvas(size, size);
  const pen = canvas.getContext('2d');
  const sky = pen.createLinearGradient(0, 0, 0, size);
  sky.addColorStop(0, '#4a90d9');
  sky.addColorStop(1, '#cfe6fa');
  pen.fillStyle = sky;
  pen.fillRect(0, 0, size, size);
  pen.fillStyle = '#ffd75e';
  pen.beginPath();
  pen.arc(size * 0.7, size * 0.3, size * 0.14, 0, 7);
  pen.fill();
  pen.fillStyle = '#4d7c3a';
  pen.fillRect(0, size * 0.65, size, size);
  return pen.getImageData(0, 0, size, size).data;
}

async function fileImage(file, size) {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const pen = new OffscreenCanvas(size, size).getContext('2d');
  pen.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2,
    side, side, 0, 0, size, size);
  return pen.getImageData(0, 0, size, size).data;
}

function setImage(rgba) {
  original = [];
  for (let i = 0; i < rgba.length; i += 4) original.push(rgba[i], rgba[i + 1], rgba[i + 2]);
  giveImage();
}

function giveImage() {
  const size = model.image_size;
  const lines = Math.floor(size * Number($('given').value) / 100);
  forget();
  given = lines * size * 3;
  tokens = original.slice(0, given).map((id) => ({id, name: String(id)}));
  at = -1;
  drawImage();
  drawMap();
}

function drawImage() {
  const size = model.image_size;
  const scale = Math.max(1, Math.floor(512 / size));
  const canvas = $('image');
  canvas.width = canvas.height = size * scale;
  const pen = canvas.getContext('2d');
  const grey = color('--line');
  const weights = new Float64Array(size * size);
  let most = 1e-9;
  if (attention) {
    for (const [place, weight] of attention.weights) {
      if (place < 0) continue;
      const pixel = Math.floor(place / 3);
      weights[pixel] += weight;
      most = Math.max(most, weights[pixel]);
    }
  }
  for (let pixel = 0; pixel < size * size; ++pixel) {
    const [r, g, b] = [0, 1, 2].map((c) => tokens[pixel * 3 + c]);
    pen.fillStyle = b ? `rgb(${r.id}, ${g.id}, ${b.id})` : grey;
    const x = (pixel % size) * scale;
    const y = Math.floor(pixel / size) * scale;
    pen.fillRect(x, y, scale, scale);
    if (weights[pixel] > 0) {
      pen.fillStyle = `rgba(255, 0, 220, ${0.9 * weights[pixel] / most})`;
      pen.fillRect(x, y, scale, scale);
    }
  }
  const frame = (i, style) => {
    const pixel = Math.floor(i / 3);
    pen.strokeStyle = style;
    pen.lineWidth = 2;
    pen.strokeRect((pixel % size) * scale - 1, Math.floor(pixel / size) * scale - 1,
      scale + 2, scale + 2);
  };
  if (at >= 0 && at !== chosen) frame(at, color('--accent'));
  if (chosen >= 0) frame(chosen, `rgb(${color('--warm')})`);
}

async function completeImage() {
  giveImage();
  let drawn = 0;
  await generate(original.length - given, () => {
    if (performance.now() - drawn < 100) return;
    drawn = performance.now();
    drawImage();
    drawMap();
  });
  drawImage();
  drawMap();
}
