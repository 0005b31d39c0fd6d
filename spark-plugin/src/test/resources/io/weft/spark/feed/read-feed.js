// Reads a feed's file with Arrow JavaScript: node read-feed.js <library> <file>
const fs = require('fs');
const arrow = require(process.argv[2]);
const bytes = fs.readFileSync(process.argv[3]);
const table = arrow.tableFromIPC(bytes);
const x = table.schema.fields.find(field => field.name === 'x');
const result = {
  x: String(x.type),
  extension: x.metadata.get('ARROW:extension:name'),
  shape: x.metadata.get('ARROW:extension:metadata'),
  batches: table.batches.length,
  ids: [],
  wrong: 0,
  misaligned: 0,
};
for (const batch of table.batches) {
  const ids = batch.getChild('id');
  const values = batch.getChild('x').data[0].children[0].values;
  // Views of the file's bytes: their start is their offset in the file.
  for (const view of [ids.data[0].values, values]) {
    if (view.buffer !== bytes.buffer || (view.byteOffset - bytes.byteOffset) % 64 !== 0) {
      result.misaligned++;
    }
  }
  for (let row = 0; row < batch.numRows; row++) {
    const id = Number(ids.get(row));
    result.ids.push(id);
    for (let i = 0; i < 6; i++) {
      if (values[6 * row + i] !== id + i) {
        result.wrong++;
      }
    }
    const text = batch.getChild('text').get(row);
    if (text !== (id % 3 === 0 ? null : 'row ' + id)) {
      result.wrong++;
    }
  }
}
console.log(JSON.stringify(result));
