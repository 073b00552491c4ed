// node compile.mjs PYODIDE PROGRAM FOLDER: runs a program on a folder, in the Python of pages.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, program, folder] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
// Without random hashes, the same input gives the same bytes.
const python = await loadPyodide({ indexURL: `${pyodide}/`, env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" } });
python.mountNodeFS("/folder", folder);
python.runPython(`${readFileSync(program, "utf8")}\nmain(Path("/folder"))`);
