export { default } from "highlight.js/lib/core";
