/**
 * Paths as a person is shown them. The twin of `shown_path` in `src/antiphon/transcript/presentation.py`.
 *
 * Paths of the gateway's machine are POSIX paths; one of Windows is shown as it is.
 */

/**
 * Remove what a path says twice: `a/./b/../c` is `a/c`. As Python's `posixpath.normpath`.
 *
 * @param {string} path
 * @returns {string}
 */
export function normalPath(path) {
  if (path === "") return ".";
  // Two slashes at the beginning, and no more, are kept: POSIX leaves their meaning open.
  const root = path.startsWith("//") && !path.startsWith("///") ? "//" : path.startsWith("/") ? "/" : "";
  /** @type {string[]} */
  const parts = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== ".." || (root === "" && parts.length === 0) || parts.at(-1) === "..") parts.push(part);
    else parts.pop();
  }
  return root + parts.join("/") || ".";
}

/**
 * A path as it is seen from a directory. As Python's `posixpath.relpath`, for two absolute paths.
 *
 * @param {string} path
 * @param {string} from
 * @returns {string}
 */
export function relativePath(path, from) {
  const partsOf = (/** @type {string} */ given) => normalPath(given).split("/").filter(Boolean);
  const [goal, start] = [partsOf(path), partsOf(from)];
  let shared = 0;
  while (shared < goal.length && shared < start.length && goal[shared] === start[shared]) shared++;
  return [...start.slice(shared).map(() => ".."), ...goal.slice(shared)].join("/") || ".";
}

/**
 * The shortest form of a path, seen from the given directory.
 *
 * @param {string} path
 * @param {string} cwd
 * @returns {string}
 */
export function shownPath(path, cwd) {
  const inside = path.startsWith("/") && cwd.startsWith("/") ? relativePath(path, cwd) : path;
  return inside.startsWith("..") ? path : inside;
}

/**
 * The last part of a path, for titles where there is little room.
 *
 * @param {string} path
 * @returns {string}
 */
export function fileName(path) {
  const parts = path.split("/").filter(Boolean);
  return parts.at(-1) ?? path;
}

/**
 * A path in two parts, so that a view can shorten the first and keep the second.
 *
 * @param {string} path
 * @returns {{directory: string, name: string}}
 */
export function splitPath(path) {
  const end = path.replace(/\/+$/, "").lastIndexOf("/") + 1;
  return { directory: path.slice(0, end), name: path.slice(end) };
}

/**
 * The language of a file for highlighting, by its name; null if it is not known.
 *
 * @param {string} path
 * @returns {string | null}
 */
export function languageOf(path) {
  const name = fileName(path).toLowerCase();
  const known = NAMES[name];
  if (known !== undefined) return known;
  const dot = name.lastIndexOf(".");
  return dot < 0 ? null : (ENDINGS[name.slice(dot + 1)] ?? null);
}

/** @type {Record<string, string>} */
const NAMES = { makefile: "makefile", dockerfile: "dockerfile", "cmakelists.txt": "cmake", gemfile: "ruby", rakefile: "ruby" };

/** @type {Record<string, string>} */
const ENDINGS = {
  bash: "bash",
  c: "c",
  cc: "cpp",
  clj: "clojure",
  cpp: "cpp",
  cs: "csharp",
  css: "css",
  dart: "dart",
  diff: "diff",
  ex: "elixir",
  exs: "elixir",
  go: "go",
  h: "c",
  hpp: "cpp",
  hs: "haskell",
  htm: "xml",
  html: "xml",
  ini: "ini",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "javascript",
  kt: "kotlin",
  less: "less",
  lua: "lua",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  php: "php",
  pl: "perl",
  ps1: "powershell",
  py: "python",
  pyi: "python",
  r: "r",
  rb: "ruby",
  rs: "rust",
  sass: "scss",
  scala: "scala",
  scss: "scss",
  sh: "bash",
  sql: "sql",
  svg: "xml",
  swift: "swift",
  tf: "ini",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
  zsh: "bash",
};
