// Bundles the double of the server: node tools/double.mjs && node build/double.mjs TRACE PORT (from ui/, after a build).
import * as esbuild from "esbuild";
await esbuild.build({ entryPoints: ["test/double/server.ts"], outfile: "build/double.mjs", bundle: true, platform: "node", format: "esm", logLevel: "error" });
