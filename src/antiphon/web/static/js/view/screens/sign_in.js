/**
 * The screen of a browser that is not signed in: what to do, in plain words, and a field for a code or a token.
 *
 * An address with `#code=` or `#token=` signs in without this screen (`state/app.js`).
 */

import { html, useEffect, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { problemOf } from "../dialog.js";
import { Icon, Mark } from "../icons.js";

/**
 * What was typed, as what it is: an address that was printed, or a token, which may be a code as well.
 *
 * @param {string} text
 * @returns {{code?: string, token?: string}}
 */
export function readCredential(text) {
  const typed = text.trim();
  const fragment = typed.includes("#") ? new URLSearchParams(typed.slice(typed.indexOf("#") + 1)) : null;
  if (fragment?.get("code")) return { code: /** @type {string} */ (fragment.get("code")) };
  if (fragment?.get("token")) return { token: /** @type {string} */ (fragment.get("token")) };
  return { token: typed };
}

/** What to tell about a sign-in that failed. @param {unknown} error */
function loginProblem(error) {
  if (error instanceof TypeError) return "The gateway did not answer. Is it running?";
  const said = problemOf(error);
  return /too many|wait/i.test(said) ? said : "The gateway does not know this code or token. A code is good once, for ten minutes.";
}

/** What the owner of the gateway does. */
function HowToSignIn() {
  return html`<h1>Sign in to this gateway</h1>
    <p class="soft">On the machine where the gateway runs, this command prints an address that signs you in:</p>
    <pre class="command-line"><code>antiphon serve status --launch</code></pre>
    <p class="soft">Open that address here, or paste it below. A token works too.</p>`;
}

/** What a guest does whose share was revoked or is over: the commands of the owner would not help. */
function EndedShare() {
  return html`<h1>This link has ended</h1>
    <p class="soft">Ask for a new one. Open it here, or paste it below.</p>`;
}

/** The screen. What went wrong with the code of the address is shown first. */
export function SignIn() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  // The gateway names a command in its sentence; the card has it already.
  const told = app.signInProblem.value ?? "";
  const first = /^this code/i.test(told) ? "This code was used already, or its ten minutes are over. The command above makes another." : told;
  useEffect(() => setProblem(first), [first]);

  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value ?? "";
    if (!text.trim()) {
      setProblem("Paste the address, code or token first.");
      field.current?.focus();
      return;
    }
    setBusy(true);
    setProblem("");
    const login = readCredential(text);
    try {
      await app.signIn(login).catch((error) => {
        // Codes and tokens look the same: what is no token may be a code.
        if (!login.token || error instanceof TypeError) throw error;
        return app.signIn({ code: login.token });
      });
    } catch (error) {
      setProblem(loginProblem(error));
      field.current?.select();
    } finally {
      setBusy(false);
    }
  };

  return html`<main class="sign-in" id="main">
    <div class="sign-in-card">
      <${Mark} size=${52} />
      ${app.wasGuest ? html`<${EndedShare} />` : html`<${HowToSignIn} />`}
      <form class="field" onSubmit=${submit} novalidate>
        <label for="credential">Address, code or token</label>
        <input ref=${field} id="credential" class="input mono" type="password" autocomplete="off" autocapitalize="none" spellcheck=${false}
          aria-invalid=${problem ? "true" : undefined} aria-describedby=${problem ? "credential-problem" : undefined} />
        ${problem && html`<p class="problem" id="credential-problem" role="alert"><${Icon} name="alert" /><span>${problem}</span></p>`}
        <button class="button primary wide" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button>
      </form>
    </div>
  </main>`;
}
