// Builds ui/dist: index.html and two hashed assets, a script and a style. `node tools/build.mjs [--fast]`; --fast skips the types.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";
import * as esbuild from "esbuild";

const home = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(home, "dist");
const mostGzippedBytes = 120 * 1024;

if (!process.argv.includes("--fast")) {
  execFileSync(process.execPath, [path.join(home, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", home], { stdio: "inherit" });
}

const common = { bundle: true, minify: true, write: false, legalComments: "none", target: ["chrome100", "firefox113", "safari16.4"] };
const script = await esbuild.build({
  ...common,
  entryPoints: [path.join(home, "src/app/main.tsx")],
  format: "esm",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
});
const style = await esbuild.build({ ...common, entryPoints: [path.join(home, "src/app/page.css")] });

// A page saved as one file holds both inline, so neither may end its own element.
const js = script.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const css = style.outputFiles[0].text;
if (css.includes("</style")) throw new Error("expected no </style in the style sheet: it would end the element of a saved page");

const hashed = (name, text) => {
  const [stem, ending] = name.split(".");
  return `${stem}.${createHash("sha256").update(text).digest("hex").slice(0, 10)}.${ending}`;
};
const scriptName = hashed("page.js", js);
const styleName = hashed("page.css", css);
const html = fs
  .readFileSync(path.join(home, "src/app/index.html"), "utf8")
  .replace("{{style}}", `./assets/${styleName}`)
  .replace("{{script}}", `./assets/${scriptName}`);

fs.rmSync(dist, { recursive: true, force: true });
fs.mkdirSync(path.join(dist, "assets"), { recursive: true });
fs.writeFileSync(path.join(dist, "index.html"), html);
fs.writeFileSync(path.join(dist, "assets", scriptName), js);
fs.writeFileSync(path.join(dist, "assets", styleName), css);

const gzipped = [html, js, css].reduce((sum, text) => sum + zlib.gzipSync(text, { level: 9 }).length, 0);
console.log(`ui/dist: ${((js.length + css.length + html.length) / 1024).toFixed(0)} KB, ${(gzipped / 1024).toFixed(1)} KB gzipped`);
if (gzipped > mostGzippedBytes) throw new Error(`expected at most ${mostGzippedBytes / 1024} KB gzipped`);
