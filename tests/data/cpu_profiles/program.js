// Something to sample: a page or a program that draws twice, with a pause in between.
function sumRoots(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += Math.sqrt(i);
  return sum;
}
function layOut(boxes) {
  let width = 0;
  for (let box = 0; box < boxes; box++) width += sumRoots(50000);
  return width;
}
function draw() {
  const rows = [];
  for (let row = 0; row < 40; row++) rows.push(layOut(12).toFixed(1));
  return rows.map(text => text.split('').reverse().join('')).join('\n');
}
draw();
setTimeout(() => { draw(); }, 50);
