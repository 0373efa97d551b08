// Says which scripts are another program than they were: reads pairs of texts as JSON, and compares what TypeScript prints of each
// without comments. A line for each script that differs or has errors.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const ts = createRequire(import.meta.url)("typescript");
const printer = ts.createPrinter({ removeComments: true });

/** A script as TypeScript prints it, after the numbers of the errors that it finds. */
function printed(text) {
  const file = ts.createSourceFile("script.js", text, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS);
  return `${file.parseDiagnostics.map((each) => each.code)}${printer.printFile(file)}`;
}

for (const [path, before, after] of JSON.parse(readFileSync(0, "utf8"))) {
  if (printed(before) !== printed(after)) console.log(path);
}
